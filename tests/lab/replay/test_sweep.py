"""Replay as Spark tasks gives the numbers that the local cores give."""

from __future__ import annotations

import numpy as np
import pytest

from sluicegate.lab.replay.replay import ReplayOptions, TraceReport, replay
from sluicegate.lab.replay.sweep import play_on
from sluicegate.lab.replay.world import DEFAULT_POINTS, PROTOCOLS, truth_of
from sluicegate.spark.session import spark_session


def figures(report: TraceReport) -> list[object]:
    return [(r.policy, r.qos_by_run, r.cost_by_run, r.rescales, r.backlog_peak, r.coverage) for r in report.results]


@pytest.mark.slow
def test_a_sweep_on_spark_gives_the_same_numbers_and_tells_its_progress() -> None:
    minutes = np.arange(300)
    loads = [(f"t{i}", 100.0 + 60.0 * np.sin(minutes / (20 + 7 * i))) for i in range(2)]
    options = ReplayOptions(("sluicegate", "recent-peak", "uncertainty-5"), PROTOCOLS["free"], runs=2)
    here = replay(loads, truth_of(DEFAULT_POINTS), options)
    spark = spark_session("local[2]", {"spark.driver.memory": "1g"})
    told: list[tuple[int, int]] = []
    try:
        there = replay(
            loads, truth_of(DEFAULT_POINTS), options, 1, lambda done, total: told.append((done, total)), play_on(spark)
        )
    finally:
        spark.stop()
    assert [figures(report) for report in there] == [figures(report) for report in here]
    assert all(0 < done <= total for done, total in told)
