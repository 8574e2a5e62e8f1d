from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluicegate.domain import Edge, Operator, Placement, Topology, Vm
from sluicegate.errors import BadInput
from sluicegate.place.mc_stream_online import Cause, Measured, OnlineRules, redeploy

TOPOLOGY = Topology(
    "t", (Operator("a", 9.0, cpu=0.5), Operator("b", 9.0, cpu=0.5)), (Edge("source", "a"), Edge("a", "b"))
)
Loads = dict[tuple[str, str], float]


def deployed(sizes: list[int], loads: Loads) -> Placement:
    vms = tuple(Vm(f"n{i}", size) for i, size in enumerate(sizes))
    slots: dict[str, tuple[tuple[str, int], ...]] = {f"{vm.name}/{n + 1}": () for vm in vms for n in range(vm.slots)}
    for operator, slot in loads:
        slots[slot] = (*slots[slot], (operator, 1))
    return Placement(vms, slots)


def vm_of(slot: str) -> str:
    return slot.split("/")[0]


def test_a_hot_instance_leaves_a_crowded_node() -> None:
    loads = {("a", "n0/1"): 0.9, ("b", "n0/2"): 0.6, ("a", "n1/1"): 0.1}
    found = redeploy(TOPOLOGY, deployed([2, 2, 2], loads), Measured(loads), late=True, rules=OnlineRules(most_moves=1))
    (move,) = found.moves
    assert (move.operator, move.origin, move.cause) == ("a", "n0/1", Cause.HOT_INSTANCE)
    # n1 runs a sibling, n2 does not.
    assert vm_of(move.target) == "n2"
    assert "90% of a slot; its node is 75% loaded, the other 45%" in move.reason


def test_erratum_hot_and_cold_are_told_apart_by_measured_load() -> None:
    # Both instances of a weigh the same in the paper; only one of them is loaded.
    loads = {("a", "n0/1"): 0.2, ("b", "n0/2"): 0.7, ("a", "n1/1"): 0.9, ("b", "n1/2"): 0.7}
    found = redeploy(TOPOLOGY, deployed([2, 2, 2], loads), Measured(loads), late=True, rules=OnlineRules(most_moves=1))
    assert (found.moves[0].operator, found.moves[0].origin) == ("a", "n1/1")


def test_a_hot_instance_stays_where_no_node_would_be_less_loaded() -> None:
    loads = {("a", "n0/1"): 0.9, ("b", "n1/1"): 0.9}
    found = redeploy(TOPOLOGY, deployed([1, 1], loads), Measured(loads), late=True)
    assert found.moves == ()
    assert found.reason.endswith("no node would be less loaded, add one")


def test_the_ends_of_a_hot_edge_come_onto_one_node() -> None:
    loads = {("a", "n0/1"): 0.4, ("b", "n1/1"): 0.4}
    edges = {("a", "b"): 1000.0}
    found = redeploy(TOPOLOGY, deployed([2, 2], loads), Measured(loads, edges), late=True)
    assert [(move.operator, vm_of(move.target), move.cause) for move in found.moves] == [("b", "n0", Cause.HOT_EDGE)]
    assert found.released == ("n1",)


def test_the_busiest_edge_comes_first() -> None:
    three = Topology(
        "t", tuple(Operator(n, 9.0, cpu=0.5) for n in "abc"), (Edge("source", "a"), Edge("a", "b"), Edge("a", "c"))
    )
    loads = {("a", "n0/1"): 0.4, ("b", "n1/1"): 0.4, ("c", "n2/1"): 0.4}
    edges = {("a", "b"): 10.0, ("a", "c"): 1000.0, ("a", "a"): 9999.0, ("b", "c"): 0.0}
    rules = OnlineRules(most_moves=1)
    found = redeploy(three, deployed([2, 2, 2], loads), Measured(loads, edges), late=True, rules=rules)
    assert [move.operator for move in found.moves] == ["c"]


def test_an_edge_already_on_one_node_is_left_alone() -> None:
    loads = {("a", "n0/1"): 0.4, ("b", "n0/2"): 0.4}
    found = redeploy(TOPOLOGY, deployed([2, 2], loads), Measured(loads, {("a", "b"): 9.0}), late=True)
    assert not any(move.cause is Cause.HOT_EDGE for move in found.moves)


def test_erratum_packing_wins_over_the_sibling_rule_while_utilisation_is_low() -> None:
    loads = {("a", "n0/1"): 0.1, ("a", "n1/1"): 0.2, ("a", "n2/1"): 0.15}
    found = redeploy(TOPOLOGY, deployed([2, 2, 2], loads), Measured(loads), late=False)
    assert {move.cause for move in found.moves} == {Cause.COLD_INSTANCE}
    assert found.moves[0].origin == "n0/1"
    assert {vm_of(move.target) for move in found.moves} == {"n1"}
    assert found.released == ("n0", "n2")


def test_a_busy_fleet_is_not_packed() -> None:
    loads = {("a", "n0/1"): 0.5, ("a", "n1/1"): 0.5}
    assert redeploy(TOPOLOGY, deployed([1, 1], loads), Measured(loads), late=False).moves == ()


def test_packing_does_not_overload_a_node() -> None:
    loads = {("a", "n0/1"): 0.05, ("a", "n1/1"): 0.2}
    rules = OnlineRules(most_load=0.2)
    assert redeploy(TOPOLOGY, deployed([1, 1], loads), Measured(loads), late=False, rules=rules).moves == ()


def test_nothing_measured_moves_nothing() -> None:
    loads = {("a", "n0/1"): 0.9, ("a", "n0/2"): 0.9}
    found = redeploy(TOPOLOGY, deployed([2, 2], loads), Measured({}), late=True)
    assert found.moves == ()
    assert found.reason.endswith("no instance's load was measured")


@st.composite
def deployments(draw: st.DrawFn) -> tuple[list[int], Loads]:
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=5))
    slots = [f"n{i}/{n + 1}" for i, size in enumerate(sizes) for n in range(size)]
    filled = draw(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(slots)), unique=True, max_size=10))
    return sizes, {one: draw(st.floats(0, 1)) for one in filled}


@settings(max_examples=120)
@given(deployments(), st.booleans(), st.integers(0, 5), st.floats(0, 100))
def test_erratum_the_loops_keep_to_their_budget_of_moves_and_lose_no_instance(
    case: tuple[list[int], Loads], late: bool, budget: int, rate: float
) -> None:
    sizes, loads = case
    now, rules = deployed(sizes, loads), OnlineRules(most_moves=budget)
    found = redeploy(TOPOLOGY, now, Measured(loads, {("a", "b"): rate}), late, rules)
    assert len(found.moves) <= budget
    moved = [(move.operator, move.origin) for move in found.moves]
    assert len(set(moved)) == len(moved)
    for operator in "ab":
        before, after = Counter(now.threads(operator)), Counter(found.placement.threads(operator))
        for move in found.moves:
            if move.operator == operator:
                before[move.origin] -= move.threads
                before[move.target] += move.threads
        assert +before == after
    crowded = {slot for slot in now.slots if len(now.slots[slot]) > 2}
    assert all(sum(t for _, t in groups) <= 2 for slot, groups in found.placement.slots.items() if slot not in crowded)


@settings(max_examples=60)
@given(deployments())
def test_hot_moves_never_raise_the_largest_load(case: tuple[list[int], Loads]) -> None:
    sizes, loads = case
    now = deployed(sizes, loads)
    found = redeploy(TOPOLOGY, now, Measured(loads), True, OnlineRules(least_utilisation=0.0))
    size = {vm.name: vm.slots for vm in now.vms}
    load = {vm.name: 0.0 for vm in now.vms}
    for (_, slot), share in loads.items():
        load[vm_of(slot)] += share / size[vm_of(slot)]
    largest = max(load.values())
    for move in found.moves:
        share = loads[move.operator, move.origin]
        load[vm_of(move.origin)] -= share / size[vm_of(move.origin)]
        load[vm_of(move.target)] += share / size[vm_of(move.target)]
    assert max(load.values()) <= largest + 1e-9


def test_bad_rules_are_refused() -> None:
    with pytest.raises(BadInput, match="most_moves"):
        OnlineRules(most_moves=-1)
    with pytest.raises(BadInput, match="most_load"):
        OnlineRules(most_load=1.5)


def test_a_slow_node_loses_its_instance_though_it_is_loaded_less_and_gets_none_for_it() -> None:
    # n2 is three times slower; its other slots are free, so that it is the least loaded of all
    loads = {("a", "n0/1"): 0.3, ("b", "n0/2"): 0.9, ("a", "n1/1"): 0.3, ("b", "n1/2"): 0.9, ("a", "n2/1"): 0.9}
    speeds = {"n0": 1.0, "n1": 1.0, "n2": 1 / 3}
    found = redeploy(TOPOLOGY, deployed([6, 6, 6], loads), Measured(loads, speeds=speeds), late=True)
    (move,) = found.moves
    assert (move.operator, move.origin) == ("a", "n2/1")
    assert "90% of a slot; its node is 15% loaded, the other 25%" in move.reason


def test_the_next_call_does_not_undo_what_an_edge_has_brought_together() -> None:
    before = {("a", "n0/1"): 0.4, ("b", "n1/1"): 0.4}
    edges = {("a", "b"): 1000.0}
    joined = redeploy(TOPOLOGY, deployed([2, 2], before), Measured(before, edges), late=True)
    after = {("a", "n0/1"): 0.4, ("b", joined.moves[0].target): 0.4}
    again = redeploy(TOPOLOGY, joined.placement, Measured(after, edges), late=True)
    assert again.moves == ()


def test_nothing_is_packed_while_a_goal_is_missed() -> None:
    loads = {("a", "n0/1"): 0.1, ("a", "n1/1"): 0.1}
    assert redeploy(TOPOLOGY, deployed([2, 2], loads), Measured(loads), late=True).moves == ()
    assert redeploy(TOPOLOGY, deployed([2, 2], loads), Measured(loads), late=False).moves
