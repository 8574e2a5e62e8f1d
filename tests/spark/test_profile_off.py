"""A profile that no longer fits what is observed is noticed, said, and corrected while a pipeline runs on Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.spark.small_pipelines import feed_steadily, ids_of, simple, waiting, warm_up

from sluicegate.config.profile_file import ProfileFile, write_profile
from sluicegate.domain import BatchCosts, ProfilePoint, TaskProfile
from sluicegate.runlog.batch_log import Tail
from sluicegate.spark.controller import Control
from sluicegate.spark.pipeline.runtime import start
from sluicegate.spark.supervisor import Supervisor

pytestmark = [pytest.mark.slow, pytest.mark.long]

RATE_PER_S, ROW_S, PATIENCE_S = 150.0, 0.008, 120.0
"""A task does 125 rows a second at most, so that two are needed."""
CORRECTED = "its rates are taken times"
PROFILED_PER_S = 1000.0
"""What the profile was measured with, when a row took an eighth of that: by it one task is enough."""


def test_an_operator_slower_than_its_profile_gets_the_tasks_it_needs_and_the_decision_says_why(
    spark: SparkSession, tmp_path: Path
) -> None:
    points = (ProfilePoint(1, 800.0, 0.2, 0.1), ProfilePoint(4, 3000.0, 0.6, 0.2))
    measured = ProfileFile(TaskProfile("work", points, PROFILED_PER_S), BatchCosts(0.2, 0.02, 0.0))
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles" / "work.toml").write_text(write_profile(measured), encoding="utf-8")
    control = Control("mba", budget=4, interval_s=1.0, cycle_s=15.0, profiles=str(tmp_path / "profiles"))
    with start(simple(waiting(ROW_S), "slower"), spark, tmp_path / "run", {"work": 1}) as running:
        feed = running.feed("lines")
        warm_up(running, feed)
        with Supervisor(running.layout, control):
            decided = Tail(running.layout.decisions)
            feed_steadily(feed, RATE_PER_S, lambda: any(CORRECTED in line for line in decided.lines()), PATIENCE_S)
        said = "\n".join(Tail(running.layout.decisions).lines())
        running.drain(PATIENCE_S)
        assert ids_of(running.read("work")) == list(range(feed.rows))
    assert f"profile of work: measured at {PROFILED_PER_S:.4g}/s a task, observed 1" in said
    (move,) = json.loads(said)["rescales"]
    assert (move["operator"], move["have"]) == ("work", 1)
    assert move["want"] >= 2
