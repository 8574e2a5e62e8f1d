"""What the peers read, and what stands in for what was not measured."""

from __future__ import annotations

import math
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from sluicegate.domain import BatchCosts, Edge, Limits, Observation, Operator, OperatorObservation, Situation, Topology
from sluicegate.policy.peers.readings import (
    MOST,
    arrivals_of,
    busy_processors,
    fewest_above,
    fewest_for,
    processors_of,
    propagated_of,
    service_of,
    utilisation_of,
    waiting_work_s,
    whole,
)

TWO = Topology("t", (Operator("a", 10.0), Operator("b", 5.0)), (Edge("source", "a"), Edge("a", "b", 0.5)))


def _situation(seen: Observation, arrivals: dict[str, float] | None = None) -> Situation:
    return Situation(0.0, TWO, seen, 20.0, arrivals or {}, limits=Limits(least=2))


def test_a_measured_service_rate_takes_the_place_of_the_topologys() -> None:
    seen = Observation(0.0, 20.0, {}, {"a": OperatorObservation(service_per_s=12.0)})
    assert (service_of(_situation(seen), "a"), service_of(_situation(seen), "b")) == (12.0, 5.0)


def test_a_measured_service_rate_of_zero_is_not_believed() -> None:
    seen = Observation(0.0, 20.0, {}, {"a": OperatorObservation(service_per_s=0.0)})
    assert service_of(_situation(seen), "a") == 10.0


def test_arrivals_that_are_missing_come_from_the_traffic_equations() -> None:
    assert arrivals_of(_situation(Observation(0.0, 20.0, {}), {"a": 7.0})) == {"a": 7.0, "b": 10.0}


def test_propagated_arrivals_ignore_what_is_held_back_now() -> None:
    held = _situation(Observation(0.0, 20.0, {}), {"a": 7.0, "b": 1.0})
    assert propagated_of(held) == {"a": 20.0, "b": 10.0}


def test_an_operator_that_was_not_seen_runs_the_least() -> None:
    assert processors_of(_situation(Observation(0.0, 20.0, {"b": 7})), "a") == 2


def test_an_unmeasured_utilisation_is_the_load_over_the_capacity_at_most_one() -> None:
    situation = _situation(Observation(0.0, 20.0, {"a": 4, "b": 1}))
    assert (utilisation_of(situation, "a"), utilisation_of(situation, "b")) == (0.5, 1.0)
    assert busy_processors(situation) == 3.0


def test_batches_that_follow_each_other_do_not_make_their_tasks_busy() -> None:
    """Its batches fill all the time, with overhead mostly: Kubernetes would see tasks that are half busy."""
    batched = TWO.with_operators((replace(TWO.operator("a"), batch=BatchCosts(0.2, 0.01)), TWO.operator("b")))
    always = OperatorObservation(utilisation=1.0)
    light = replace(_situation(Observation(0.0, 20.0, {"a": 4}, {"a": always})), topology=batched)
    assert utilisation_of(light, "a") == 0.5
    behind = replace(always, saturated_per_s=36.0)
    after = replace(light, observation=replace(light.observation, operators={"a": behind}))
    assert utilisation_of(after, "a") == 0.9


def test_waiting_work_counts_rows_by_the_time_they_take() -> None:
    seen = Observation(0.0, 20.0, {}, {"a": OperatorObservation(queue_rows=30.0)})
    assert waiting_work_s(_situation(seen)) == 3.0


def test_the_fewest_for_a_rate_exceed_it_at_every_operator() -> None:
    assert fewest_for(20.0, TWO) == {"a": 3, "b": 3}


def test_a_demand_beyond_any_count_is_cut_to_the_most() -> None:
    assert fewest_above(1e300, 1e-3) == MOST
    assert whole(1e300) == MOST


@given(st.floats(0, 1e8), st.floats(0.5, 1e6))
def test_the_fewest_above_a_demand_are_the_fewest(demand: float, service: float) -> None:
    k = fewest_above(demand, service)
    assert k * service > demand
    assert k == 1 or (k - 1) * service <= demand


@given(st.integers(0, 10**6), st.floats(1e-3, 1e3))
def test_whole_undoes_the_rounding_of_a_quotient(count: int, unit: float) -> None:
    assert whole(count * unit / unit) == count


@given(st.floats(0, 1e8))
def test_whole_is_ceil_but_for_rounding(amount: float) -> None:
    assert math.ceil(amount) - 1 <= whole(amount) <= math.ceil(amount)
    assert whole(amount) >= amount * (1 - 1e-8) - 1e-8
