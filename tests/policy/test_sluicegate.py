from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.control.planning import predict_allocation
from sluicegate.domain import (
    BatchCosts,
    Edge,
    Forecast,
    Goal,
    Limits,
    Observation,
    Operator,
    OperatorObservation,
    Proposal,
    Situation,
    Sojourn,
    Topology,
)
from sluicegate.model.microbatch import mean_sojourn_s
from sluicegate.policy.demand import situation_at
from sluicegate.policy.papers.drs import Drs
from sluicegate.policy.sluicegate import Memory, SluicegatePolicy

CHAIN = Topology("t", (Operator("a", 10.0), Operator("b", 5.0)), (Edge("source", "a"), Edge("a", "b", 0.5)))
BATCHED = Topology("t", (Operator("a", 500.0, batch=BatchCosts(0.137, 0.029)),), (Edge("source", "a"),))


def proposed(situation: Situation, policy: SluicegatePolicy | None = None, memory: Memory | None = None) -> Proposal:
    return (policy or SluicegatePolicy()).propose(memory or Memory(), situation)[1]


@pytest.mark.parametrize("goal", [Goal(mean_s=0.6), Goal(p95_s=1.5), Goal(p99_s=3.0), Goal(mean_s=0.6, p95_s=1.5)])
def test_mean_and_quantile_promises_are_kept_with_room(goal: Goal) -> None:
    proposal = proposed(situation_at(CHAIN, 40.0, goal))
    sojourn = predict_allocation(CHAIN, 40.0, proposal.processors).sojourn
    reached = {"mean": sojourn.mean_s, "p95": sojourn.p95_s, "p99": sojourn.p99_s}
    assert proposal.feasible
    for what, bound in goal.latency_bounds.items():
        value = reached[what]
        assert value is not None
        assert value <= bound * 0.9


def test_not_one_processor_more_than_the_promise_needs() -> None:
    proposal = proposed(situation_at(CHAIN, 40.0, Goal(mean_s=0.6)), SluicegatePolicy(margin=0.0))
    assert proposal.total == Drs().propose(None, situation_at(CHAIN, 40.0, Goal(mean_s=0.6)))[1].total


def test_the_forecasts_quantile_is_planned_for() -> None:
    situation = situation_at(CHAIN, 40.0, Goal(mean_s=0.6))
    ahead = Forecast(10.0, np.full(6, 55.0), np.full(6, 2.0))
    more = proposed(replace(situation, forecast=ahead))
    assert more.total > proposed(situation).total
    assert "58" in more.reasons[0]


def test_where_the_promise_leaves_room_the_mean_forecast_is_enough() -> None:
    """A load of 66 instead of 55 for 20 s makes rows wait 4 s longer."""
    ahead = Forecast(10.0, np.full(6, 55.0), np.full(6, 6.7))

    def planned_for(mean_s: float) -> float:
        policy = SluicegatePolicy(lead_steps=2)
        situation = replace(situation_at(CHAIN, 40.0, Goal(mean_s=mean_s)), forecast=ahead)
        return float(proposed(situation, policy).reasons[0].split()[1])

    assert planned_for(4 / 0.3 + 0.1) == 55.0
    assert planned_for(2 / 0.3) == pytest.approx(66.0 / 1.1, rel=1e-2)
    assert planned_for(0.6 / 1000) == pytest.approx(60.0, rel=1e-2)  # 1.5 times the load now is the most


def test_a_forecast_that_has_seen_little_cannot_ask_for_the_moon() -> None:
    situation = situation_at(CHAIN, 40.0, Goal(mean_s=0.6))
    wild = proposed(replace(situation, forecast=Forecast(10.0, np.full(6, 4000.0), np.full(6, 2.0))))
    assert wild.total == proposed(situation_at(CHAIN, 60.0, Goal(mean_s=0.6))).total


def test_an_uncertain_service_rate_is_planned_for_cautiously() -> None:
    situation = situation_at(CHAIN, 40.0, Goal(mean_s=0.6))
    unsure = replace(situation, service_rsd={"a": 0.2, "b": 0.0})
    assert proposed(unsure).processors["a"] > proposed(situation).processors["a"]
    assert proposed(unsure).processors["b"] == proposed(situation).processors["b"]


def test_whole_executors_are_asked_for_and_used() -> None:
    limits = Limits(slots_per_executor=4, executors_per_node=2)
    proposal = proposed(situation_at(CHAIN, 40.0, Goal(mean_s=0.6), limits))
    assert proposal.total % 8 == 0
    assert any("whole nodes of 8 slots" in reason for reason in proposal.reasons)


def test_a_cost_ceiling_bounds_the_plan_and_what_it_costs_in_latency_is_said() -> None:
    cheap = proposed(situation_at(CHAIN, 40.0, Goal(mean_s=0.25, cost_per_hour=0.55), Limits(price_per_slot_hour=0.05)))
    assert cheap.total <= 11
    assert not cheap.feasible
    assert "out of reach" in " ".join(cheap.reasons)


def test_cost_and_latency_together_when_both_can_hold() -> None:
    proposal = proposed(situation_at(CHAIN, 40.0, Goal(mean_s=0.6, cost_per_hour=2.0)))
    assert proposal.feasible
    assert proposal.total * 0.05 <= 2.0


@given(st.floats(100, 20_000), st.floats(0.3, 5.0))
def test_it_never_goes_beyond_the_micro_batch_laws_minimum(rate: float, goal_s: float) -> None:
    proposal = proposed(situation_at(BATCHED, rate, Goal(mean_s=goal_s)))
    best = min(range(int(rate / 500) + 1, 200), key=lambda k: mean_sojourn_s(rate, 500.0, k, BatchCosts(0.137, 0.029)))
    assert proposal.processors["a"] <= best


def test_batches_start_no_later_than_every_latency_goal_allows() -> None:
    """A loose mean beside a tight p95: rows wait evenly over a pace, so 95% of it counts towards the p95."""
    proposal = proposed(situation_at(BATCHED, 800.0, Goal(mean_s=20.0, p95_s=2.0)))
    k = proposal.processors["a"]
    least = 0.137 + 0.029 * k
    assert 0 < proposal.pace_s["a"] * (0.95 + 800 / (500 * k)) + least <= 2.0
    alone = proposed(situation_at(BATCHED, 800.0, Goal(mean_s=20.0)))
    assert alone.pace_s["a"] > 2.0


def test_a_backlog_is_worked_off() -> None:
    situation = situation_at(CHAIN, 40.0, Goal(mean_s=0.6))
    seen = Observation(0.0, 40.0, {"a": 6, "b": 6}, {"a": OperatorObservation(queue_rows=3000.0)})
    waiting = proposed(replace(situation, observation=seen))
    assert waiting.processors["a"] > proposed(situation).processors["a"] + 3
    assert "3,000 rows wait at a" in waiting.reasons[1]


def test_a_model_that_promises_too_much_is_corrected_by_what_is_measured() -> None:
    situation = situation_at(CHAIN, 40.0, Goal(mean_s=0.6))
    k = proposed(situation).processors
    slow = replace(situation, observation=Observation(0.0, 40.0, k, sojourn=Sojourn(0.9)))
    policy, memory = SluicegatePolicy(), Memory()
    for _ in range(60):
        memory, proposal = policy.propose(memory, slow)
    assert memory.bias > 1.4
    assert proposal.total > sum(k.values())


def test_the_bias_is_learned_with_the_pace_of_batches_counted_in() -> None:
    situation = situation_at(BATCHED, 800.0, Goal(mean_s=4.0))
    policy = SluicegatePolicy()
    memory, proposal = policy.propose(Memory(), situation)
    assert proposal.pace_s["a"] > 1
    reached = Sojourn(0.6 * 4.0)
    settled = replace(situation, observation=Observation(0.0, 800.0, proposal.processors, sojourn=reached))
    memory, _ = policy.propose(memory, settled)
    assert memory.bias == pytest.approx(1.0, abs=0.02)


def test_rows_go_to_stateless_instances_by_their_speed_and_the_plan_says_so() -> None:
    situation = situation_at(CHAIN, 40.0, Goal(mean_s=0.6))
    k = proposed(situation).processors
    speeds = (10.0,) * (k["a"] - 1) + (2.0,)
    seen = Observation(0.0, 40.0, k, {"a": OperatorObservation(instance_per_s=speeds)})
    proposal = proposed(replace(situation, observation=seen))
    assert proposal.shares["a"][-1] == pytest.approx(0.2 * proposal.shares["a"][0])
    assert any("a: rows by speed" in why for why in proposal.reasons)
    stateful = replace(CHAIN, operators=tuple(replace(o, stateful=True) for o in CHAIN.operators))
    assert not proposed(replace(situation, topology=stateful, observation=seen)).shares
