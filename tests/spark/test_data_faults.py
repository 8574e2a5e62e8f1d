"""Data that is not as it was: each fault is exact, or one line that says what is wrong and whose it is.

Late rows are compared with plain Spark in test_watermarks, rows that code cannot take in test_dead_letters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.spark.small_pipelines import refused, same, simple

from sluicegate.errors import BadInput
from sluicegate.spark.cluster.waiting import wait_until
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.failures import OperatorFailed
from sluicegate.spark.pipeline.runtime import start

pytestmark = pytest.mark.slow
SCHEMA = "id long, v long"


def table(ids: list[int], **columns: Any) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), **columns})


def longs(*values: int | None) -> Any:
    return pa.array(values, pa.int64())


GOOD = table([1, 2], v=longs(10, None))


def rows_of(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in frame.collect()), key=str)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (table([3], v=pa.array(["x"])), r"source 'lines' takes \(id int64, v int64\), got \(id int64, v string\)"),
        (table([3]), r"got \(id int64\): nothing published"),
        (table([3], v=longs(4), w=longs(5)), r"got \(id int64, v int64, w int64\): nothing published"),
        (table([3], v=pa.array([1.5])), r"got \(id int64, v double\): nothing published"),
    ],
    ids=["another type", "a column is gone", "a new column", "fractions"],
)
def test_a_source_that_is_fed_other_columns_takes_nothing_and_goes_on_with_the_right_ones(
    spark: SparkSession, tmp_path: Path, wrong: pa.Table, said: str
) -> None:
    with start(simple(same, schema=SCHEMA), spark, tmp_path) as running:
        feed = running.feed("lines")
        feed.append(GOOD)
        with pytest.raises(BadInput, match=said) as told:
            feed.append(wrong)
        assert "\n" not in str(told.value)
        feed.append(table([4], v=longs(5)))
        running.drain()
        assert rows_of(running.read("work")) == [(1, 10), (2, None), (4, 5)]


def test_a_null_where_none_may_be_is_refused_and_where_it_may_be_it_is_a_null(
    spark: SparkSession, tmp_path: Path
) -> None:
    strict = simple(lambda frame: frame.where("v IS NOT NULL"), schema="id long, v long NOT NULL")
    with start(strict, spark, tmp_path) as running:
        feed = running.feed("lines")
        with pytest.raises(BadInput, match="column 'v' is NOT NULL, and row 1 of the table has none: nothing"):
            feed.append(GOOD)
        feed.append(table([7], v=longs(8)))
        running.drain()
        assert rows_of(running.read("work")) == [(7, 8)]


def test_other_columns_declared_for_the_same_folder_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    with start(simple(same, schema=SCHEMA), spark, tmp_path) as running:
        running.feed("lines").append(GOOD)
        running.drain()
    told = refused(spark, simple(same, schema="id long, v string"), tmp_path)
    assert told.startswith(
        "edge 'lines' holds id long, v long, but is now to carry id long, v string: keep the columns"
    )


@pytest.mark.parametrize("kind", ["varchar(5)", "array<struct<c: char(2)>>", "map<string, varchar(5)>"])
def test_strings_of_a_limited_length_are_refused_where_they_are_declared(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    assert "give string in place of char and varchar" in refused(spark, simple(same, schema=f"v {kind}"), tmp_path)


def test_a_null_that_code_cannot_take_stops_the_operator_and_says_where(spark: SparkSession, tmp_path: Path) -> None:
    plus = F.udf(lambda v: v + 1, "long")
    pipeline = simple(lambda frame: frame.withColumn("v", plus("v")), schema=SCHEMA, retry_for_s=0.0)
    with start(pipeline, spark, tmp_path) as running:
        running.feed("lines").append(GOOD)
        with pytest.raises(OperatorFailed, match=r"at batch 0: TypeError: .*\(its rows: edge 'lines', manifest 0\)"):
            running.drain()


def test_a_cast_that_fails_in_sql_stops_the_operator_and_try_cast_gives_a_null(
    spark: SparkSession, tmp_path: Path
) -> None:
    texts = pa.table({"t": pa.array(["1", "x"])})
    strict = simple(lambda frame: frame.selectExpr("CAST(t AS long) AS id"), schema="t string", retry_for_s=0.0)
    with start(strict, spark, tmp_path) as running:
        running.feed("lines").append(texts)
        with pytest.raises(OperatorFailed, match=r"CAST_INVALID_INPUT.*edge 'lines', manifest 0"):
            running.drain()
    mild = simple(lambda frame: frame.selectExpr("try_cast(t AS long) AS id"), schema="t string")
    with start(mild, spark, tmp_path) as running:
        running.drain()
        assert rows_of(running.read("work")) == [(1,), (None,)]


def test_events_that_come_twice_count_once_also_across_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    once = simple(lambda frame: frame.dropDuplicates(["id"]), schema=SCHEMA, stateful=True, mode="append")
    with start(once, spark, tmp_path) as running:
        feed = running.feed("lines")
        for _ in range(2):
            feed.append(table([1, 2, 2], v=longs(1, 2, 2)))
            running.drain()
    with start(once, spark, tmp_path) as running:
        running.feed("lines").append(table([2, 3, 1], v=longs(2, 3, 1)))
        running.drain()
        assert rows_of(running.read("work")) == [(1, 1), (2, 2), (3, 3)]


def test_rows_later_than_the_watermark_are_left_out_and_all_others_counted(spark: SparkSession, tmp_path: Path) -> None:
    def windows(frame: DataFrame) -> DataFrame:
        timed = frame.withWatermark("at", "10 seconds").groupBy(F.window("at", "10 seconds"))
        return timed.count().selectExpr("window.start AS start", "count AS n")

    began = datetime(2026, 1, 1)

    def at(*seconds: int) -> pa.Table:
        times = [began + timedelta(seconds=s) for s in seconds]
        return pa.table({"at": pa.array(times, pa.timestamp("us", "UTC"))})

    pipeline = simple(windows, schema="at timestamp", stateful=True, mode="append")
    with start(pipeline, spark, tmp_path) as running:
        feed = running.feed("lines")
        for rows in (at(1, 2, 15), at(45), at(3, 31), at(90)):  # 3 comes when the watermark is at 35, 31 in its window
            feed.append(rows)
            running.drain()
        found = running.read("work").selectExpr("unix_timestamp(start) % 86400 AS s", "n")
        assert rows_of(found) == [(0, 2), (10, 1), (30, 1), (40, 1)]


@dataclass(frozen=True)
class Files:
    """A source of Spark's own: files of one kind in a folder, the second of them other than the first."""

    kind: str
    first: Any
    second: Any
    expected: list[tuple[Any, ...]] | None
    said: str = ""
    options: tuple[tuple[str, str], ...] = ()

    def put(self, folder: Path, number: int, what: Any) -> None:
        draft = folder.parent / "draft"
        if isinstance(what, str):
            draft.write_text(what)
        else:
            pq.write_table(what, draft)
        draft.rename(folder / f"{number}.{self.kind}")

    def reading(self, folder: Path) -> Callable[[SparkSession], DataFrame]:
        kind, options = self.kind, dict(self.options)
        return lambda spark: spark.readStream.schema(SCHEMA).options(**options).format(kind).load(str(folder))


ONE, LINE = table([1], v=longs(2)), '{"id": 1, "v": 2}\n'
FILES = {
    "json, a new column": Files("json", LINE, '{"id": 3, "v": 4, "w": 9}\n', [(1, 2), (3, 4)]),
    "json, a column is gone": Files("json", LINE, '{"id": 3}\n', [(1, 2), (3, None)]),
    "json, another type": Files("json", LINE, '{"id": 3, "v": "x"}\n', [(1, 2), (3, None)]),
    "json, torn, and to fail": Files("json", LINE, '{"id": 3,\n', None, "end-of-input", (("mode", "FAILFAST"),)),
    "parquet, a column is gone": Files("parquet", ONE, table([3]), [(1, 2), (3, None)]),
    "parquet, another type": Files(
        "parquet", ONE, table([3], v=pa.array(["x"])), None, "column: [v], physicalType: BINARY"
    ),
}


@pytest.mark.parametrize("what", FILES)
def test_files_that_change_under_a_source_of_sparks_own(spark: SparkSession, tmp_path: Path, what: str) -> None:
    files, folder = FILES[what], tmp_path / "in"
    folder.mkdir()
    pipeline = Pipeline("files")
    pipeline.sink("out", pipeline.operator("work", same, pipeline.source("lines", stream=files.reading(folder))))
    files.put(folder, 0, files.first)
    with start(pipeline, spark, tmp_path / "run", retry_for_s=0.0) as running:
        assert wait_until(lambda: rows_of(running.read("work")) == [(1, 2)], 120.0, 0.2)
        files.put(folder, 1, files.second)
        assert wait_until(lambda: bool(running.stopped) or running.read("work").count() == 2, 120.0, 0.2)
        if files.expected is not None:
            assert rows_of(running.read("work")) == files.expected
            return
        (problem,) = running.stopped.values()
        assert files.said in str(problem)
        assert "\n" not in str(problem)
        assert f"reading {folder / '1'}.{files.kind}); a file of its source is not as its schema says" in str(problem)
        assert rows_of(running.read("work")) == [(1, 2)]
