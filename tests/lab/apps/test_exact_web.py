"""Applications on web logs, user behaviour and tweets are exact while k moves, and would notice if they were not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType
from tests.lab.apps.moving import ROUNDS, assert_exact_while_k_moves

from sluicegate.lab.apps import commodity_count, data_clean, grep, hashtags, page_view, rolling_count, unique_visitor
from sluicegate.lab.running.app import App
from sluicegate.spark.edges.kept import read_stream
from sluicegate.spark.pipeline.declaration import Pipeline

CASES: Mapping[str, tuple[App, Callable[[], Pipeline], int]] = {
    "commodity_count": (commodity_count.APP, partial(commodity_count.build, key_groups=2), 300),
    "grep": (grep.APP, partial(grep.build, key_groups=2), 300),
    "rolling_count": (rolling_count.APP, partial(rolling_count.build, key_groups=2), 300),
    "unique_visitor": (unique_visitor.APP, partial(unique_visitor.build, key_groups=2), 300),
    "page_view": (page_view.APP, partial(page_view.build, key_groups=2), 300),
    "data_clean": (data_clean.APP, data_clean.build, 300),
    "hashtags": (hashtags.APP, partial(hashtags.build, key_groups=2), 300),
    "hashtags_60s": (hashtags.BY_SECOND, partial(hashtags.build, 2, hashtags.SECONDS, "hashtags_60s"), 1500),
}
COUNTS = ("views", "lines", "times", "visitors")
Rows = list[dict[str, Any]]


def last_told(rows: Rows) -> int:
    """Where a row is that the answer depends on: the largest count, or of a log without counts any row."""
    count = next((name for name in COUNTS if name in rows[0]), None)
    return max(range(len(rows)), key=lambda n: rows[n][count]) if count else 0


def tampered(rows: Rows) -> dict[str, Rows]:
    """The log with one row lost, doubled, or wrong in one column."""
    at = last_told(rows)
    changed = [{**rows[at], name: other(value)} for name, value in rows[at].items() if value is not None]
    wrong = {f"wrong {n}": [*rows[:at], row, *rows[at + 1 :]] for n, row in enumerate(changed)}
    return {"lost": rows[:at] + rows[at + 1 :], "doubled": [*rows, rows[at]], **wrong}


def other(value: object) -> object:
    return value + 1 if isinstance(value, int) else f"{value}x"


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_answer_is_exact_while_k_moves_and_one_wrong_row_is_noticed(
    name: str, spark: SparkSession, tmp_path: Path
) -> None:
    app, build, count = CASES[name]
    pipeline = build()
    assert_exact_while_k_moves(app, pipeline, count, spark, tmp_path)
    logs = {sink.name: read_stream(spark, tmp_path, sink.stream) for sink in pipeline.sinks.values()}
    fed = dict.fromkeys(pipeline.sources, count * sum(len(ks) for ks in ROUNDS))
    assert missed(app, fed, logs) == []


def held(spark: SparkSession, rows: Rows, schema: StructType) -> DataFrame:
    """Rows without the many small files they came from: judging them is then a matter of moments."""
    return spark.createDataFrame([tuple(row.values()) for row in rows], schema).coalesce(1)


def missed(app: App, fed: Mapping[str, int], logs: Mapping[str, DataFrame]) -> list[str]:
    """The ways of tampering that the application's check lets pass."""
    assert app.check is not None
    passed = []
    for sink, log in logs.items():
        for how, rows in tampered([row.asDict() for row in log.collect()]).items():
            changed = held(log.sparkSession, rows, log.schema)
            passed += [f"{sink}: {how}"] if app.check(fed, {**logs, sink: changed}).exact else []
    return passed
