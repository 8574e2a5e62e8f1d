"""Mc-Stream's algorithm 1 by trial on real Spark: one number of instances after the other is measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.spark.small_pipelines import feed_steadily, ids_of, simple, waiting, warm_up

from sluicegate.runlog.batch_log import Tail
from sluicegate.spark.controller import Control
from sluicegate.spark.pipeline.runtime import start
from sluicegate.spark.supervisor import Supervisor

pytestmark = [pytest.mark.slow, pytest.mark.long]

RATE_PER_S, ROW_S, TRIAL_S, PATIENCE_S = 200.0, 0.008, 4.0, 150.0
"""1.6 instances' worth of rows: one cannot keep up, whatever the machine."""


def test_one_more_instance_is_tried_measured_and_kept_since_it_carries_more(
    spark: SparkSession, tmp_path: Path
) -> None:
    control = Control("mc-stream", budget=4, interval_s=1.0, options=(f"trial_s={TRIAL_S}",))
    with start(simple(waiting(ROW_S), "trial"), spark, tmp_path / "run", {"work": 1}) as running:
        feed = running.feed("lines")
        warm_up(running, feed)
        with Supervisor(running.layout, control):
            decided = Tail(running.layout.decisions)
            feed_steadily(feed, RATE_PER_S, lambda: any("gave more" in line for line in decided.lines()), PATIENCE_S)
            decisions = map(json.loads, Tail(running.layout.decisions).lines())
            moves = [decision for decision in decisions if decision["rescales"]]
        running.drain(PATIENCE_S)
        assert ids_of(running.read("work")) == list(range(feed.rows))
    assert [move["running"]["work"] for move in moves][:2] == [2, 4]
    assert "work: by trial, 1 instances gave" in moves[0]["reasons"][0]
    assert "work: by trial, 2 instances gave more" in moves[1]["reasons"][0]
