"""One key with most of the rows: it is found, named, and no processors are given that could not help."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from sluicegate.spark.controller import Control, Controller
from sluicegate.spark.observe.hot_key import key_columns
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.runtime import start

pytestmark = pytest.mark.slow

ROWS, HOT, PATIENCE_S = 200, 7, 150.0
"""Rows at a time, of which two thirds have one key."""


def slow_total() -> StatefulProcessor:
    """How many rows a key has had; each takes 3 ms. Made here, so that it reaches Spark's workers by value."""

    def init(self: Any, handle: Any) -> None:
        self.total = handle.getValueState("total", "n long")

    def take(self: Any, key: tuple[int], parts: Iterator[pd.DataFrame], timers: Any) -> Iterator[pd.DataFrame]:
        rows, before = sum(len(part) for part in parts), self.total.get()
        time.sleep(0.003 * rows)
        total = rows + (before[0] if before is not None else 0)
        self.total.update((total,))
        yield pd.DataFrame({"user": [key[0]], "n": [total]})

    methods = {"init": init, "handleInputRows": take, "close": lambda self: None}
    processor = type("SlowTotal", (StatefulProcessor,), methods)()
    assert isinstance(processor, StatefulProcessor)
    return processor


def totals(rows: DataFrame) -> DataFrame:
    return rows.groupBy("user").transformWithStateInPandas(slow_total(), "user long, n long", "Update", "None")


def users(first: int) -> list[int]:
    return [HOT if i % 3 else 100 + i for i in range(first, first + ROWS)]


@pytest.mark.long
def test_a_hot_key_is_named_and_more_processors_are_said_not_to_help(spark: SparkSession, tmp_path: Path) -> None:
    pipeline = Pipeline("hot")
    stream = pipeline.operator("totals", totals, pipeline.source("rows", "user long"), stateful=True, key_groups=4)
    pipeline.sink("out", stream)
    fed, said = Counter[int](), list[str]()
    with start(pipeline, spark, tmp_path / "run", {"totals": 2}) as running:
        feed = running.feed("rows")
        controller = Controller(running.layout, Control(slo=("mean=400ms",), budget=8, interval_s=1.0))
        until = time.monotonic() + PATIENCE_S
        while not said and time.monotonic() < until:
            some = users(feed.rows)
            fed.update(some)
            feed.append(pa.table({"user": pa.array(some, pa.int64())}))
            running.drain()
            time.sleep(0.3)
            decision = controller.step(time.time())[1]
            said = [refusal.why for refusal in decision.refusals if refusal.rule == "hot key"]
        wanted = decision.proposal.processors["totals"] if decision.proposal else 0
        last = running.read("totals").groupBy("user").agg(F.max("n").alias("n")).collect()
    assert said, "two thirds of the rows have one key"
    assert said[0].startswith(f"totals: key user={HOT} has 6")
    assert "more than 2 processors will not help" in said[0]
    assert wanted == 2, "what was given before it was known goes by the governor's rules"
    assert {row["user"]: row["n"] for row in last} == dict(fed)


def test_the_key_of_every_kind_of_state_is_known_by_its_columns(spark: SparkSession) -> None:
    rows = spark.readStream.format("rate").load().withColumnRenamed("value", "user")
    assert key_columns(totals(rows)) == ["user"]
    assert key_columns(rows.groupBy("user", "timestamp").count().where("count > 1")) == ["user", "timestamp"]
    assert key_columns(rows.dropDuplicates(["user"])) == ["user"]
    assert key_columns(rows.where("user > 1")) == []
