"""The rows that one batch may take."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.control.read_limit import most_rows
from sluicegate.domain import BatchCosts, Edge, Goal, Observation, Operator, Situation, Topology

USUAL = 5_000_000


def situation(goal: Goal, arrivals_per_s: float, service_per_s: float, own_s: float) -> Situation:
    operator = Operator("a", service_per_s, batch=BatchCosts(own_s, 0.0))
    one = Topology("t", (operator,), (Edge("source", "a"), Edge("a", "sink")))
    return Situation(0.0, one, Observation(0.0, arrivals_per_s, {"a": 1}), arrivals_per_s, {"a": arrivals_per_s}, goal)


@pytest.mark.parametrize("goal", [Goal(mean_s=4.0), Goal(p95_s=4.0), Goal(mean_s=4.0, p95_s=9.0)])
def test_under_a_promise_a_backlog_comes_in_batches_that_take_about_as_long(goal: Goal) -> None:
    rows = most_rows(situation(goal, 80.0, 20.0, 0.3), "a", 8, 0.0, USUAL)
    assert 0.9 * 4.0 <= 0.3 + rows / (8 * 20.0) <= 1.4 * 4.0


def test_without_a_promise_or_a_plan_nothing_changes() -> None:
    assert most_rows(situation(Goal(), 150.0, 20.0, 0.3), "a", 8, 0.0, USUAL) == USUAL
    assert most_rows(None, "a", 8, 0.0, USUAL) == USUAL


@given(
    rho=st.floats(0.0, 0.95),
    service_per_s=st.floats(1e-3, 1e9),
    own_s=st.floats(1e-3, 100.0),
    bound_s=st.floats(1e-3, 600.0),
    processors=st.integers(1, 1000),
)
def test_the_limit_leaves_half_of_the_spare_capacity_for_catching_up(
    rho: float, service_per_s: float, own_s: float, bound_s: float, processors: int
) -> None:
    capacity_per_s = processors * service_per_s
    now = situation(Goal(mean_s=bound_s), rho * capacity_per_s, service_per_s, own_s)
    rows = most_rows(now, "a", processors, 0.0, usual=2**62)
    assert rows / (own_s + rows / capacity_per_s) >= (1 + rho) / 2 * capacity_per_s * (1 - 1e-9)


def test_a_pace_leaves_room_for_twice_what_comes_meanwhile() -> None:
    assert most_rows(situation(Goal(mean_s=1.0), 100.0, 1000.0, 0.3), "a", 1, 60.0, USUAL) >= 2 * 100.0 * 60.0
