"""Policies that decide nodes: processors follow the slots that are warm, executors follow the nodes, at once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sluicegate.control import loop
from sluicegate.control.settings import Known, Timing, retimed, settings_for
from sluicegate.domain import (
    Edge,
    ExecutorSeen,
    FleetSeen,
    Forecast,
    Limits,
    NodeSeen,
    Observation,
    Operator,
    OperatorObservation,
    Shape,
    Situation,
    Topology,
)
from sluicegate.policy.in_steps import InSteps
from sluicegate.policy.over_nodes import OverNodes
from sluicegate.policy.papers.uncertainty import Uncertainty, online_sample

TWO = Topology("two", (Operator("a", 10.0), Operator("b", 5.0)), (Edge("source", "a"), Edge("a", "b")))
CURVE = ((1, 5.0), (2, 10.0), (3, 15.0), (1, 5.2), (2, 9.8), (3, 15.1))
SLOTS = 3


def fleet(nodes: int, warm: int | None = None, requested: int | None = None) -> FleetSeen:
    executors = tuple(ExecutorSeen(f"h{i}", SLOTS, i < (nodes if warm is None else warm)) for i in range(nodes))
    seen = tuple(NodeSeen(f"n{i}", SLOTS, f"h{i}") for i in range(nodes))
    return FleetSeen(Shape(SLOTS, 1, 4, settle_s=600.0), executors, seen, nodes if requested is None else requested)


def at(now_s: float, rate: float, there: FleetSeen | None, running: dict[str, int] | None = None) -> Situation:
    seen = Observation(now_s, rate, running or {"a": 1, "b": 1}, fleet=there)
    return Situation(now_s, TWO, seen, rate, {"a": rate, "b": rate}, limits=Limits(budget=12))


def nodes_policy(number: int = 0) -> OverNodes:
    return OverNodes(InSteps(Uncertainty(number, training=CURVE, slots_per_node=SLOTS, most=4), 60.0), SLOTS)


def test_tasks_wait_for_the_nodes_they_are_meant_for() -> None:
    policy = nodes_policy()
    memory, first = policy.propose(policy.start(), at(0.0, 14.0, fleet(1)))
    assert (first.nodes, first.total) == (3, 3)
    memory, coming = policy.propose(memory, at(10.0, 14.0, fleet(3, warm=1)))
    assert (coming.nodes, coming.total) == (3, 3)
    memory, there = policy.propose(memory, at(20.0, 14.0, fleet(3)))
    assert (there.nodes, dict(there.processors)) == (3, {"a": 3, "b": 6})


def test_between_decisions_processors_stay_though_learned_rates_move() -> None:
    policy = nodes_policy()
    memory, first = policy.propose(policy.start(), at(0.0, 9.0, fleet(2)))
    moved = replace(TWO, operators=(Operator("a", 5.0), Operator("b", 10.0)))
    memory, held = policy.propose(memory, replace(at(10.0, 9.0, fleet(2)), topology=moved))
    assert held.processors == first.processors
    _, later = policy.propose(memory, replace(at(60.0, 9.0, fleet(2)), topology=moved))
    assert dict(later.processors) == {"a": 4, "b": 2}


def test_fewer_nodes_take_their_processors_with_them_at_once() -> None:
    policy = nodes_policy()
    memory, _ = policy.propose(policy.start(), at(0.0, 14.0, fleet(3)))
    _, fewer = policy.propose(memory, at(60.0, 4.0, fleet(3)))
    assert (fewer.nodes, fewer.total) == (1, 3)


def test_an_online_sample_is_of_the_nodes_that_are_warm() -> None:
    measured = {"a": OperatorObservation(saturated_per_s=9.0), "b": OperatorObservation()}
    seen = Observation(0.0, 14.0, {"a": 2, "b": 4}, measured, fleet=fleet(2))
    now = Situation(0.0, TWO, seen, 14.0, {"a": 14.0, "b": 14.0})
    assert online_sample(now, SLOTS) == (2, 9.0)
    assert online_sample(replace(now, observation=replace(seen, rescaling=True)), SLOTS) is None


def test_what_saturated_while_nodes_were_still_to_come_is_no_sample() -> None:
    """At the decision all is warm again; the look that saturated was one at which it was not."""
    policy = nodes_policy(2)
    memory, _ = policy.propose(policy.start(), at(0.0, 14.0, fleet(1)))
    flat_out = {"a": OperatorObservation(saturated_per_s=2.0)}
    starting = replace(at(30.0, 14.0, fleet(3, warm=1)).observation, operators=flat_out, rescaling=True)
    memory, _ = policy.propose(memory, replace(at(30.0, 14.0, None), observation=starting))
    _, then = policy.propose(memory, at(60.0, 14.0, fleet(3), {"a": 1, "b": 1}))
    assert not any(why.startswith("learned online:") for why in then.reasons)


def test_no_more_nodes_than_may_be_are_decided_and_it_says_so() -> None:
    policy = nodes_policy()
    _, proposal = policy.propose(policy.start(), at(0.0, 1000.0, fleet(1)))
    assert proposal.nodes == 4
    assert not proposal.feasible
    assert "no size up to 4 carries" in proposal.reasons[0]


def test_the_loop_asks_for_the_executors_of_the_nodes_and_does_not_wait_for_its_window() -> None:
    known = Known(training=CURVE, slots_per_node=SLOTS, most=4)
    settings = settings_for("uncertainty-0", TWO, limits=Limits(budget=12), timing=Timing(1.0, 5.0, 10.0), known=known)
    state, wanted = loop.start(settings), list[int]()
    for now in range(30):
        rate = 14.0 if now < 15 else 4.0
        have = wanted[-1] if wanted else 1
        seen = Observation(float(now), rate, {"a": 1, "b": 1}, fleet=fleet(have))
        state, decision = loop.tick(state, seen, float(now))
        assert decision.executors is not None
        wanted.append(decision.executors)
        if now == 0:
            (change,) = [c for c in decision.changes if c.what == "executors"]
            assert change.reason == "3 nodes were decided, each with 1 executors"
    assert (wanted[0], wanted[14], wanted[-1]) == (3, 3, 1)


def test_a_node_that_takes_many_looks_to_come_is_decided_once() -> None:
    known = Known(training=CURVE, slots_per_node=SLOTS, most=4)
    settings = settings_for("uncertainty-0", TWO, limits=Limits(budget=12), timing=Timing(1.0, 5.0, 10.0), known=known)
    state, told = loop.start(settings), list[tuple[int, str, str]]()
    for now in range(12):
        seen = Observation(float(now), 14.0, {"a": 1, "b": 1}, fleet=fleet(1 if now < 6 else 2))
        state, decision = loop.tick(state, seen, float(now))
        assert decision.executors == 3
        told += [(now, change.have, change.want) for change in decision.changes if change.what == "executors"]
    assert told == [(0, "1", "3"), (6, "2", "3")]


def test_a_measured_start_up_time_takes_the_place_of_the_assumed_one() -> None:
    known = Known(training=CURVE, slots_per_node=SLOTS, most=4)
    made = [
        settings_for("uncertainty-5", TWO, timing=Timing(2.0, startup_s, 20.0), known=known)
        for startup_s in (4.0, 14.0)
    ]
    old, fresh = made
    after = retimed(old, fresh)
    assert after.policy == fresh.policy
    assert after.forecaster == old.forecaster
    assert isinstance(after.policy, OverNodes)
    assert after.policy.policy.lead_s == 14.0


def test_without_a_file_the_curve_is_of_the_learned_rates_in_nodes() -> None:
    policy = OverNodes(InSteps(Uncertainty(0, slots_per_node=SLOTS), 60.0), SLOTS)
    _, proposal = policy.propose(policy.start(), at(0.0, 19.0, fleet(4)))  # two nodes: 2 x 10 and 4 x 5 rows/s
    assert (proposal.nodes, dict(proposal.processors)) == (2, {"a": 2, "b": 4})


def test_the_forecast_peak_decides_where_the_policy_forecasts() -> None:
    policy = nodes_policy(5)
    coming = Forecast(6.0, np.full(20, 14.0), np.full(20, 0.1))
    _, proposal = policy.propose(policy.start(), replace(at(0.0, 4.0, fleet(1)), forecast=coming))
    assert proposal.nodes == 3
