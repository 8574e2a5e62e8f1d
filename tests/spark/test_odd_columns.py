"""Columns that an edge cannot hold are refused before it is made; odd names are carried as they are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.spark.small_pipelines import numbers, refused, same, simple

from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.runtime import start

pytestmark = pytest.mark.slow

UNFIT: dict[str, tuple[Callable[[DataFrame], DataFrame], str]] = {
    "none": (lambda rows: rows.select(), "has no column: give at least one"),
    "twins": (lambda rows: rows.selectExpr("id", "1 as a", "2 as A"), "column 'a' more than once"),
    "interval": (lambda rows: rows.selectExpr("id", "make_interval(1) as i"), "column 'i' of type interval"),
    "hollow": (lambda rows: rows.selectExpr("id", "from_json('{}', 'a array<struct<>>') as s"), "column 's' of type"),
}


@pytest.mark.parametrize("kind", UNFIT)
def test_columns_that_no_file_can_hold_are_refused_before_the_edge_has_them(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    function, why = UNFIT[kind]
    assert why in refused(spark, simple(function), tmp_path / "run")
    with start(simple(same), spark, tmp_path / "run") as running:  # with other columns the folder can be used
        running.feed("lines").append(numbers(2))
        running.drain()
        assert running.read("work").count() == 2


def test_a_source_whose_columns_no_file_can_hold_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    told = refused(spark, simple(same, schema="id long, i interval"), tmp_path / "run")
    assert told.startswith("source 'lines' has column 'i' of type interval")


def test_event_time_is_carried_in_columns_whose_names_have_dots_and_backticks(
    spark: SparkSession, tmp_path: Path
) -> None:
    def timed(rows: DataFrame) -> DataFrame:
        at = rows.select("id", F.timestamp_seconds("id").alias("at")).withWatermark("at", "0 seconds")
        return at.select("id", F.col("at").alias("event.time"), F.col("at").alias("a`b"))

    def windows(rows: DataFrame) -> DataFrame:
        return rows.groupBy(F.window("`event.time`", "10 seconds")).count().select("window.start", "count")

    pipeline = Pipeline("odd_names")
    made = pipeline.operator("timed", timed, pipeline.source("lines", "id long"), fuse=False)
    counted = pipeline.operator("windows", windows, made, stateful=True, mode="append", key_groups=2)
    pipeline.sink("windows", counted)
    with start(pipeline, spark, tmp_path / "run") as running:
        feed = running.feed("lines")
        for first in range(0, 60, 10):
            feed.append(numbers(10, first))
            running.drain()
        found = running.read("windows").selectExpr("unix_timestamp(start) as start", "count").collect()
    assert sorted((row["start"], row["count"]) for row in found) == [(first, 10) for first in range(0, 50, 10)]


def test_a_splitter_writes_its_rows_in_a_session_that_overwrites_partitions_dynamically(
    spark: SparkSession, tmp_path: Path
) -> None:
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        pipeline = Pipeline("splits")
        lines = pipeline.source("lines", "id long")

        def routed(rows: DataFrame) -> DataFrame:
            return rows.withColumn("output", F.when(F.col("id") % 2 == 0, "even").otherwise("odd"))

        route = pipeline.splitter("route", routed, lines, outputs=["even", "odd"])
        pipeline.sink("even", route["even"])
        pipeline.sink("odd", route["odd"])
        with start(pipeline, spark, tmp_path / "run") as running:
            running.feed("lines").append(numbers(10))
            running.drain(60.0)
            found = [sorted(row["id"] for row in running.read(f"route.{name}").collect()) for name in ("even", "odd")]
        assert found == [list(range(0, 10, 2)), list(range(1, 10, 2))]
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
