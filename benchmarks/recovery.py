"""One operator of three fails: the time until it works again, alone, against starting the whole pipeline again.

Usage: recovery.py [--rounds N]

Three queries in a row; the one in the middle counts by key, with state. In each round its query fails once, by an error
in the middle of a batch, and is tried again by itself; then it fails in the same way, and the whole pipeline is stopped
and started in the same folder, as a restart of everything from its checkpoints would. Both are timed from the rows that
fail to the first rows at the sink, in the same session, one after the other. Only the ratio is worth anything: what
else runs on the machine is in both.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import results
from sluicegate.spark.edges.folder import FolderEdge
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.runtime import Running, start
from sluicegate.spark.session import spark_session

_PATIENCE_S, _KEYS = 120.0, 50


def pipeline(poison: Path) -> Pipeline:
    """The middle operator fails while the file ``poison`` is there."""

    def fails(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for part in parts:
            if poison.exists():
                poison.unlink()
                raise OSError("the disk of this task is gone")
            yield part

    def counted(rows: DataFrame) -> DataFrame:
        return rows.mapInArrow(fails, "id long, key long").groupBy("key").count()

    made = Pipeline("recovery")
    rows = made.operator("first", lambda frame: frame, made.source("rows", "id long, key long"), fuse=False)
    counts = made.operator("count", counted, rows, stateful=True, key_groups=4, fuse=False)
    made.sink("out", made.operator("last", lambda frame: frame, counts, fuse=False))
    return made


def rows(first: int, number: int = 200) -> pa.Table:
    ids = range(first, first + number)
    return pa.table({"id": pa.array(ids, pa.int64()), "key": pa.array([i % _KEYS for i in ids], pa.int64())})


def until_new(running: Running, since: int) -> None:
    """Until a manifest with rows is at the sink that was not there before."""
    edge, until = FolderEdge(running.layout.edge("last")), time.monotonic() + _PATIENCE_S
    while time.monotonic() < until:
        newest = edge.newest()
        if newest is not None and newest.rows_after > since:
            return
        time.sleep(0.02)
    raise SystemExit("nothing came out")


def at_sink(running: Running) -> int:
    newest = FolderEdge(running.layout.edge("last")).newest()
    return 0 if newest is None else newest.rows_after


def counted_once(running: Running, fed: int) -> bool:
    """Whether every key ends with as many rows as were fed for it, and no count is in the sink twice."""
    told = Counter((int(row["key"]), int(row["count"])) for row in running.read("last").collect())
    last: dict[int, int] = {}
    for key, number in told:
        last[key] = max(last.get(key, 0), number)
    return max(told.values()) == 1 and last == dict(Counter(i % _KEYS for i in range(fed)))


def one_round(spark: SparkSession, home: Path) -> dict[str, float]:
    poison = home.parent / "poison"
    running = start(pipeline(poison), spark, home, {"count": 2})
    feed = running.feed("rows")
    for _ in range(6):
        feed.append(rows(feed.rows))
        running.drain()
    known = at_sink(running)
    poison.touch()
    began = time.monotonic()
    feed.append(rows(feed.rows))
    until_new(running, known)
    alone_s = time.monotonic() - began
    running.drain()
    known = at_sink(running)
    poison.touch()
    began = time.monotonic()
    feed.append(rows(feed.rows))
    while poison.exists() and time.monotonic() < began + _PATIENCE_S:
        time.sleep(0.01)
    running.stop()
    running = start(pipeline(poison), spark, home)
    until_new(running, known)
    all_s = time.monotonic() - began
    running.drain()
    exact = counted_once(running, running.feed("rows").rows)
    running.stop()
    return {"exact": exact, "alone_s": round(alone_s, 3), "all_s": round(all_s, 3), "ratio": round(all_s / alone_s, 2)}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    spark = spark_session("local[4]", {"spark.driver.memory": "1g"}, "sluicegate recovery")
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(given.rounds):
            found.append(one_round(spark, Path(folder) / f"run-{number}"))
            results.record("recovery", **found[-1])
            print(found[-1], flush=True)
    spark.stop()
    ratio = statistics.median(one["ratio"] for one in found)
    print(f"median of {len(found)}: everything started again takes {ratio:.1f} times as long as one operator alone")


if __name__ == "__main__":
    main()
