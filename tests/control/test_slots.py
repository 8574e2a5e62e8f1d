"""Executors as slots: how many there must be, which executor every thread goes to, and who gets how many rows."""

from __future__ import annotations

from collections import Counter

import pytest

from sluicegate.control import loop
from sluicegate.control.loop import Settings, tick
from sluicegate.control.rules import Rules
from sluicegate.control.settings import settings_for
from sluicegate.control.slots import SlotMapping, bundles_for, shares_for
from sluicegate.domain import (
    Decision,
    Edge,
    ExecutorSeen,
    FleetSeen,
    Goal,
    NodeSeen,
    Observation,
    Operator,
    Placement,
    ProfilePoint,
    Shape,
    TaskProfile,
    Topology,
    Vm,
)
from sluicegate.domain.fleet import host_of
from sluicegate.model.mapping_rate import Routing
from sluicegate.place.catalogue import placer
from sluicegate.policy.demand import situation_at
from sluicegate.policy.papers.mba import Mba

CALL = TaskProfile("call", (ProfilePoint(1, 80.0, 0.4, 0.1), ProfilePoint(2, 120.0, 0.6, 0.1)))
NOTE = TaskProfile("note", (ProfilePoint(1, 400.0, 0.2, 0.1),))
TWO = Topology(
    "two",
    (Operator("call", 80.0, profile=CALL), Operator("note", 400.0, profile=NOTE)),
    (Edge("source", "call"), Edge("call", "note")),
)
SHAPE = Shape(slots_per_executor=2, least=1, most=8, settle_s=0.0)


def fleet(executors: int, warm: int | None = None) -> FleetSeen:
    """Nodes of two executors each."""
    here = tuple(ExecutorSeen(f"h{n // 2}", 2, warm is None or n < warm, str(n)) for n in range(executors))
    nodes = tuple(NodeSeen(f"n{n}", 4, f"h{n}") for n in range((executors + 1) // 2))
    return FleetSeen(SHAPE, here, nodes, executors)


def settings(mapper: str) -> Settings:
    made = settings_for("mba", TWO, Goal(mean_s=30.0), slots=SlotMapping(placer(mapper)))
    return loop.Settings(TWO, made.policy, made.goal, rules=Rules.none(), placer=made.placer, slots=made.slots)


def decided(mapper: str, executors: int, warm: int | None = None, rate: float = 230.0) -> Decision:
    state = loop.start(settings(mapper))
    seen = Observation(0.0, rate, {"call": 4, "note": 1}, fleet=fleet(executors, warm))
    return tick(state, seen, 0.0)[1]


@pytest.mark.parametrize("mapper", ["dsm", "rsm", "sam"])
def test_every_thread_has_one_executor_of_those_that_are_there(mapper: str) -> None:
    decision = decided(mapper, executors=4)
    assert dict(decision.running) == {"call": 4, "note": 1}
    there = {one.place for one in fleet(4).executors}
    assert {name: len(on) for name, on in decision.places.items()} == {"call": 4, "note": 1}
    assert {place for on in decision.places.values() for place in on} <= there


def test_sam_keeps_the_threads_of_a_full_bundle_on_one_executor() -> None:
    counted = Counter(decided("sam", executors=4).places["call"])
    assert sorted(counted.values()) == [2, 2]


def test_more_executors_are_asked_for_with_the_mapper_named_and_nodes_rented_for_them() -> None:
    decision = decided("sam", executors=1, rate=470.0)
    assert decision.running["call"] == 8
    assert decision.executors == 5
    assert decision.nodes == 3
    assert any("slots by sam" in change.reason for change in decision.changes)
    assert not any(decision.places.values())


def test_nothing_is_mapped_to_an_executor_that_is_not_warm() -> None:
    decision = decided("sam", executors=4, warm=3)
    assert "executor_h1_3" not in {place for on in decision.places.values() for place in on}


def test_fewer_executors_than_the_mapping_needs_are_said() -> None:
    decision = decided("sam", executors=1, rate=2000.0)
    assert decision.executors == SHAPE.most
    (refusal,) = [one for one in decision.refusals if one.rule == "slots"]
    assert "there may be 8 executors" in refusal.why


def test_an_extra_slot_is_reported_where_the_mapper_needs_one() -> None:
    """Two bundles of 0.6 CPU and one of 0.8 need three slots where their sum fits two."""
    profile = TaskProfile("a", (ProfilePoint(1, 10.0, 0.6, 0.6), ProfilePoint(2, 12.0, 0.6, 0.6)))
    heavy = Topology(
        "heavy",
        tuple(Operator(name, 10.0, profile=profile) for name in ("a", "b", "c")),
        (Edge("source", "a"), Edge("a", "b"), Edge("b", "c")),
    )
    made = settings_for("mba", heavy, slots=SlotMapping(placer("sam")))
    state = loop.start(loop.Settings(heavy, made.policy, rules=Rules.none(), placer=made.placer, slots=made.slots))
    seen = Observation(0.0, 11.0, {"a": 2, "b": 2, "c": 2}, fleet=fleet(1))
    decision = tick(state, seen, 0.0)[1]
    (asked,) = [change for change in decision.changes if change.what == "executors"]
    assert "of them extra" in asked.reason


def test_slot_aware_shares_follow_what_the_slots_do_and_even_routing_has_none() -> None:
    mapped = Placement((Vm("h", 2),), {"h/1": (("call", 2),), "h/2": (("call", 1),)})
    assert shares_for(TWO, mapped, Routing.EVEN) == {}
    shares = shares_for(TWO, mapped, Routing.SLOT_AWARE)["call"]
    assert shares == pytest.approx((60 / 200, 60 / 200, 80 / 200))


def test_an_operator_that_the_governor_leaves_as_it_is_is_mapped_as_it_is() -> None:
    proposal = Mba().propose(None, situation_at(TWO, 230.0))[1]
    bundles = [b for b in bundles_for(TWO, proposal, {"call": 5, "note": 1}) if b.operator == "call"]
    assert [(b.threads, b.full) for b in bundles] == [(2, True), (2, True), (1, False)]


def test_a_place_names_its_host_whether_it_is_a_host_or_an_executor() -> None:
    assert host_of(ExecutorSeen("10.0.0.7", 2, True, "12").place) == "10.0.0.7"
    assert host_of("node_1") == "node_1"
