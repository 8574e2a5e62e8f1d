"""The least for a load that is known."""

from __future__ import annotations

import numpy as np
import pytest

from sluicegate.domain import Edge, Observation, Operator, Situation, Topology
from sluicegate.errors import BadInput
from sluicegate.policy.peers import Hindsight

ONE = Topology("t", (Operator("a", 100.0),), (Edge("source", "a"),))


def _sizes(policy: Hindsight, times: list[float]) -> list[int]:
    situations = [Situation(t, ONE, Observation(t, 1.0, {"a": 1}), 1.0, {}) for t in times]
    return [policy.propose(None, situation)[1].total for situation in situations]


def test_a_cycle_is_sized_for_its_own_peak_and_for_nothing_before_or_after() -> None:
    rates = [900.0, 100.0, 250.0, 100.0, 900.0]
    assert _sizes(Hindsight(rates, 60.0, window_steps=3), [60.0]) == [3]


def test_minute_by_minute_it_follows_the_load() -> None:
    rates = np.array([50.0, 100.0, 250.0])
    assert _sizes(Hindsight(rates, 60.0, window_steps=1), [0.0, 59.0, 60.0, 120.0]) == [1, 1, 2, 3]


def test_a_tick_a_hair_early_belongs_to_the_step_that_begins() -> None:
    assert _sizes(Hindsight([50.0, 250.0], 60.0, window_steps=1), [60.0 - 1e-6]) == [3]


def test_before_and_after_the_known_rates_the_nearest_counts() -> None:
    policy = Hindsight([150.0, 50.0], 60.0, window_steps=1, start_s=1000.0)
    assert _sizes(policy, [0.0, 1000.0, 1060.0, 9000.0]) == [2, 2, 1, 1]


def test_no_rates_are_refused() -> None:
    with pytest.raises(BadInput, match="no rates"):
        Hindsight([])
