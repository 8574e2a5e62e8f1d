"""Pipelines of one operator over numbered rows, for tests about one thing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from sluicegate.errors import BadInput
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.runtime import start


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


def ids_of(frame: DataFrame) -> list[int]:
    return sorted(int(row["id"]) for row in frame.collect())


def refused(spark: SparkSession, pipeline: Pipeline, folder: Path, **options: Any) -> str:
    with pytest.raises(BadInput) as problem:
        start(pipeline, spark, folder, **options)
    assert "\n" not in str(problem.value)
    return str(problem.value)
