"""Streaming queries without any sluicegate code, each with its right answer computed in plain Python.

Rows are a function of their number; a file has ``ROWS`` rows. A retried batch overwrites its earlier output.
"""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sluicegate.errors import BadInput

ROWS = 40
_KEYS = 23
_T0 = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
SCHEMA = "k string, v long, ts timestamp"

Row = Mapping[str, Any]


def row(number: int) -> dict[str, object]:
    """Row ``number``: event time advances one second every twenty rows; every third row repeats the one before."""
    at = number - (number % 3 == 2)
    ts = (_T0 + dt.timedelta(seconds=at // 20)).isoformat().replace("+00:00", "Z")
    return {"k": f"k{at * 7919 % _KEYS}", "v": at, "ts": ts}


def write_file(folder: Path, number: int) -> None:
    """Write the rows of one file atomically."""
    lines = [json.dumps(row(number * ROWS + place)) for place in range(ROWS)]
    draft = folder.with_name("draft.json")
    draft.write_text("\n".join(lines) + "\n", encoding="utf-8")
    draft.rename(folder / f"{number:06d}.json")


@dataclass(frozen=True, slots=True)
class QueryKind:
    """A query: ``found(rows of the sink)`` must equal ``answer(rows fed)``; ``kafka``: it reads a topic, not files."""

    name: str
    build: Callable[[DataFrame], DataFrame]
    mode: str
    answer: Callable[[Iterable[Row]], Counter[object]]
    found: Callable[[Iterable[Row]], Counter[object]]
    kafka: bool = False


def _largest(rows: Iterable[Row], key: str, value: str) -> Counter[object]:
    """The largest value by key, which is the final one since counts only grow."""
    told: Counter[object] = Counter()
    for one in rows:
        told[one[key]] = max(told[one[key]], int(one[value]))
    return told


def _slots(rows: Iterable[Row]) -> Counter[object]:
    return Counter(int(one["v"]) // 200 for one in rows)


KINDS: Mapping[str, QueryKind] = {
    kind.name: kind
    for kind in (
        QueryKind(
            "counts",
            lambda rows: rows.groupBy("k").agg(F.count("*").alias("n")),
            "update",
            lambda fed: Counter(one["k"] for one in fed),
            lambda out: _largest(out, "k", "n"),
        ),
        QueryKind(
            "first",
            lambda rows: rows.dropDuplicates(["v"]).select("k", "v"),
            "append",
            lambda fed: Counter({one["v"]: 1 for one in fed}),
            lambda out: Counter(one["v"] for one in out),
        ),
        QueryKind(
            "windows",
            lambda rows: rows.groupBy(F.floor(F.col("v") / 200).alias("w")).agg(
                F.count("*").alias("n"), F.sum("v").alias("s")
            ),
            "update",
            _slots,
            lambda out: _largest(out, "w", "n"),
        ),
        QueryKind(
            "kafka",
            lambda rows: rows.groupBy("k").agg(F.count("*").alias("n")),
            "update",
            lambda fed: Counter(one["k"] for one in fed),
            lambda out: _largest(out, "k", "n"),
            kafka=True,
        ),
    )
}


def kind_named(name: str) -> QueryKind:
    if name not in KINDS:
        raise BadInput(f"no attached query {name!r}: there is {', '.join(f'attach:{kind}' for kind in KINDS)}")
    return KINDS[name]


def fed_rows(files: int) -> list[dict[str, object]]:
    return [row(number) for number in range(files * ROWS)]


def sink_rows(sink: Path) -> list[dict[str, object]]:
    """All rows that the batches wrote, read without Spark."""
    found: list[dict[str, object]] = []
    for path in sorted(sink.glob("batch=*/*.parquet")):
        found += pq.read_table(path).to_pylist()
    return found
