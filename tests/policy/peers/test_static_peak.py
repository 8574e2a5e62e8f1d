"""Sized once."""

from __future__ import annotations

import numpy as np

from sluicegate.domain import Edge, Forecast, Goal, Limits, Observation, Operator, Situation, Topology
from sluicegate.policy.peers import StaticPeak

CHAIN = Topology("t", (Operator("a", 100.0), Operator("b", 30.0)), (Edge("source", "a"), Edge("a", "b", 0.5)))


def _at(rate: float, forecast: Forecast | None = None, goal: Goal | None = None) -> Situation:
    seen = Observation(0.0, rate, {"a": 1, "b": 1})
    return Situation(0.0, CHAIN, seen, rate, {}, goal or Goal(), Limits(), forecast)


def test_a_given_peak_is_what_it_is_sized_for() -> None:
    assert StaticPeak(600.0).propose(None, _at(1.0))[1].processors == {"a": 7, "b": 11}


def test_it_never_changes() -> None:
    memory, first = StaticPeak().propose(None, _at(250.0))
    for rate in (0.0, 10.0, 10_000.0):
        memory, later = StaticPeak().propose(memory, _at(rate))
        assert later.processors == first.processors == {"a": 3, "b": 5}


def test_without_a_peak_the_forecasts_counts_if_it_is_larger() -> None:
    rising = Forecast(60.0, np.array([300.0, 500.0]), np.array([0.0, 0.0]))
    assert StaticPeak().propose(None, _at(250.0, rising))[1].processors["a"] == 6
    assert StaticPeak().propose(None, _at(900.0, rising))[1].processors["a"] == 10


def test_the_forecasts_level_is_the_goals_share_on_time() -> None:
    unsure = Forecast(60.0, np.array([500.0]), np.array([100.0]))
    assert StaticPeak().propose(None, _at(0.0, unsure, Goal(on_time=0.5)))[1].processors["a"] == 6
    assert StaticPeak().propose(None, _at(0.0, unsure, Goal(on_time=0.99)))[1].processors["a"] == 8


def test_a_peak_of_zero_keeps_one_processor_each() -> None:
    assert StaticPeak(0.0).propose(None, _at(900.0))[1].processors == {"a": 1, "b": 1}
