"""Pipelines of one operator over numbered rows, for tests about one thing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from sluicegate.errors import BadInput
from sluicegate.spark.edges.feed import Feed
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.runtime import Running, start


def numbers(number: int, first: int = 0) -> pa.Table:
    return pa.table({"id": pa.array(range(first, first + number), pa.int64())})


def simple(
    function: Callable[[DataFrame], DataFrame], name: str = "simple", schema: str = "id long", **options: Any
) -> Pipeline:
    pipeline = Pipeline(name)
    pipeline.sink("out", pipeline.operator("work", function, pipeline.source("lines", schema), **options))
    return pipeline


def same(frame: DataFrame) -> DataFrame:
    return frame


def waiting(row_s: float) -> Callable[[DataFrame], DataFrame]:
    """Each row waits: that needs no core, so k is worth what it would be on a cluster."""

    def wait(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for part in parts:
            time.sleep(row_s * part.num_rows)
            yield part

    return lambda rows: rows.mapInArrow(wait, "id long")


def warm_up(running: Running, feed: Feed, batches: int = 6) -> None:
    """Small batches, one by one: the first ones compile."""
    for _ in range(batches):
        feed.append(numbers(20, feed.rows))
        running.drain()


def feed_steadily(feed: Feed, rows_per_s: float, done: Callable[[], bool], patience_s: float) -> None:
    """Feed numbered rows at a rate until ``done``, or until ``patience_s`` have passed."""
    began, fed = time.monotonic(), feed.rows
    while (elapsed_s := time.monotonic() - began) < patience_s and not done():
        due = fed + int(elapsed_s * rows_per_s) - feed.rows
        feed.append(numbers(max(due, 1), feed.rows))
        time.sleep(0.1)


def ids_of(frame: DataFrame) -> list[int]:
    return sorted(int(row["id"]) for row in frame.collect())


def refused(spark: SparkSession, pipeline: Pipeline, folder: Path, **options: Any) -> str:
    with pytest.raises(BadInput) as problem:
        start(pipeline, spark, folder, **options)
    assert "\n" not in str(problem.value)
    return str(problem.value)
