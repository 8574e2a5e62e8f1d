"""An episode of micro-batches under our own policy: what a load that jumps costs, and for how many rows it is late."""

from __future__ import annotations

from statistics import fmean

from sluicegate.control.settings import Timing, settings_for
from sluicegate.domain import BatchCosts, Edge, Goal, Limits, Operator, Topology
from sluicegate.lab.simulate.episode import Course, run_episode

ONE = Topology("t", (Operator("a", 100.0, batch=BatchCosts(0.15, 0.03, 0.04)),), (Edge("source", "a"),))
STATIC_PEAK = 5
"""Processors that a load of 450 rows/s needs at 100 rows/s each."""


def test_a_load_that_triples_for_half_a_minute_is_followed_in_time_for_less_than_its_peak() -> None:
    settings = settings_for("sluicegate", ONE, Goal(mean_s=3.0), Limits(budget=16), Timing(2.0, 2.0))
    rates = (150.0,) * 30 + (300.0,) + (450.0,) * 30 + (150.0,) * 30
    course = Course(rates, 1.0, interval_s=2.0, mode="micro-batch")
    found = [run_episode(settings, course, {"a": 2}, seed) for seed in range(1, 7)]
    assert fmean(one.kept_share or 0.0 for one in found) > 0.86
    assert fmean(one.slot_seconds for one in found) < 0.84 * STATIC_PEAK * course.seconds
