"""A profile that no longer fits what is observed is noticed, said, and corrected while a pipeline runs on Spark."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.spark.small_pipelines import ids_of, numbers

from sluicegate.config.profile_file import ProfileFile, write_profile
from sluicegate.domain import BatchCosts, ProfilePoint, TaskProfile
from sluicegate.runlog.batch_log import Tail
from sluicegate.spark.controller import Control
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.runtime import start
from sluicegate.spark.supervisor import Supervisor

pytestmark = [pytest.mark.slow, pytest.mark.long]

RATE_PER_S, ROW_S, PATIENCE_S = 150.0, 0.008, 120.0
"""A task does 125 rows a second at most, so that two are needed."""
PROFILED_PER_S = 1000.0
"""What the profile was measured with, when a row took an eighth of that: by it one task is enough."""


def waiting() -> Pipeline:
    def wait(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for part in parts:
            time.sleep(ROW_S * part.num_rows)
            yield part

    def work(rows: DataFrame) -> DataFrame:
        return rows.mapInArrow(wait, "id long")

    pipeline = Pipeline("slower")
    pipeline.sink("out", pipeline.operator("work", work, pipeline.source("rows", "id long")))
    return pipeline


def test_an_operator_slower_than_its_profile_gets_the_tasks_it_needs_and_the_decision_says_why(
    spark: SparkSession, tmp_path: Path
) -> None:
    points = (ProfilePoint(1, 800.0, 0.2, 0.1), ProfilePoint(4, 3000.0, 0.6, 0.2))
    measured = ProfileFile(TaskProfile("work", points, PROFILED_PER_S), BatchCosts(0.2, 0.02, 0.0))
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles" / "work.toml").write_text(write_profile(measured), encoding="utf-8")
    control = Control("mba", budget=4, interval_s=1.0, cycle_s=15.0, profiles=str(tmp_path / "profiles"))
    with start(waiting(), spark, tmp_path / "run", {"work": 1}) as running:
        feed = running.feed("rows")
        for _ in range(6):  # the first batches compile
            feed.append(numbers(20, feed.rows))
            running.drain()
        with Supervisor(running.layout, control):
            began, fed, said = time.monotonic(), feed.rows, ""
            while (now := time.monotonic()) - began < PATIENCE_S and "its rates are taken times" not in said:
                due = fed + int((now - began) * RATE_PER_S) - feed.rows
                feed.append(numbers(max(due, 1), feed.rows))
                time.sleep(0.1)
                said = "\n".join(Tail(running.layout.decisions).lines())
        running.drain(PATIENCE_S)
        assert ids_of(running.read("work")) == list(range(feed.rows))
    assert f"profile of work: measured at {PROFILED_PER_S:.4g}/s a task, observed 1" in said
    (move,) = json.loads(said)["rescales"]
    assert (move["operator"], move["have"]) == ("work", 1)
    assert move["want"] >= 2
