"""Mc-Stream's algorithm 1 by trial on real Spark: one number of instances after the other is measured."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.spark.small_pipelines import ids_of, numbers

from sluicegate.runlog.batch_log import Tail
from sluicegate.spark.controller import Control
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.runtime import start
from sluicegate.spark.supervisor import Supervisor

pytestmark = [pytest.mark.slow, pytest.mark.long]

RATE_PER_S, ROW_S, TRIAL_S, PATIENCE_S = 200.0, 0.008, 4.0, 150.0
"""1.6 instances' worth of rows: one cannot keep up, whatever the machine."""


def waiting() -> Pipeline:
    def wait(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for part in parts:
            time.sleep(ROW_S * part.num_rows)
            yield part

    def work(rows: DataFrame) -> DataFrame:
        return rows.mapInArrow(wait, "id long")

    pipeline = Pipeline("trial")
    pipeline.sink("out", pipeline.operator("work", work, pipeline.source("rows", "id long")))
    return pipeline


def test_one_more_instance_is_tried_measured_and_kept_since_it_carries_more(
    spark: SparkSession, tmp_path: Path
) -> None:
    control = Control("mc-stream", budget=4, interval_s=1.0, options=(f"trial_s={TRIAL_S}",))
    with start(waiting(), spark, tmp_path / "run", {"work": 1}) as running:
        feed = running.feed("rows")
        for _ in range(6):  # the first batches compile
            feed.append(numbers(20, feed.rows))
            running.drain()
        with Supervisor(running.layout, control):
            began, fed, said = time.monotonic(), feed.rows, ""
            while (now := time.monotonic()) - began < PATIENCE_S and "gave more" not in said:
                due = fed + int((now - began) * RATE_PER_S) - feed.rows
                feed.append(numbers(max(due, 1), feed.rows))
                time.sleep(0.1)
                said = "\n".join(Tail(running.layout.decisions).lines())
            moves = [json.loads(line) for line in said.splitlines() if json.loads(line)["rescales"]]
        running.drain(PATIENCE_S)
        assert ids_of(running.read("work")) == list(range(feed.rows))
    assert [move["running"]["work"] for move in moves][:2] == [2, 4]
    assert "work: by trial, 1 instances gave" in moves[0]["reasons"][0]
    assert "work: by trial, 2 instances gave more" in moves[1]["reasons"][0]
