"""The contract every registered placer keeps."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluicegate.domain import Bundle, Edge, Operator, Topology
from sluicegate.errors import Infeasible
from sluicegate.place.catalogue import PLACERS
from sluicegate.place.extra_slots import place_with_extra_slots
from sluicegate.place.placer import DoesNotFit
from sluicegate.policy.vms import rent

NAMES = sorted(PLACERS)
AWARE = ["rsm", "sam"]


@st.composite
def cases(draw: st.DrawFn) -> tuple[Topology, list[Bundle], int]:
    n = draw(st.integers(1, 4))
    names = [f"o{i}" for i in range(n)]
    topology = Topology(
        "t",
        tuple(Operator(name, 10.0) for name in names),
        (Edge("source", "o0"), *(Edge(f"o{i}", f"o{i + 1}") for i in range(n - 1))),
    )
    bundles = [
        Bundle(name, draw(st.integers(1, 3)), draw(st.floats(0.05, 1.0)), draw(st.floats(0.0, 0.8)))
        for name in names
        for _ in range(draw(st.integers(1, 4)))
    ]
    return topology, bundles, draw(st.integers(1, 20))


def threads(bundles: list[Bundle]) -> dict[str, int]:
    found: dict[str, int] = {}
    for bundle in bundles:
        found[bundle.operator] = found.get(bundle.operator, 0) + bundle.threads
    return found


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=60)
@given(case=cases())
def test_every_thread_is_placed_once_on_a_slot_there_is_or_the_refusal_says_why(
    name: str, case: tuple[Topology, list[Bundle], int]
) -> None:
    topology, bundles, slots = case
    fleet = rent(slots).vms
    found = PLACERS[name].place(topology, bundles, fleet)
    if isinstance(found, DoesNotFit):
        assert found.why.strip()
        return
    known = {f"{vm.name}/{number}" for vm in fleet for number in range(1, vm.slots + 1)}
    assert set(found.slots) <= known
    for operator, count in threads(bundles).items():
        assert sum(found.threads(operator).values()) == count
    assert all(count > 0 for groups in found.slots.values() for _, count in groups)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=40)
@given(case=cases())
def test_the_same_bundles_are_placed_the_same_way(name: str, case: tuple[Topology, list[Bundle], int]) -> None:
    topology, bundles, slots = case
    fleet = rent(slots).vms
    assert PLACERS[name].place(topology, bundles, fleet) == PLACERS[name].place(topology, bundles, fleet)


@pytest.mark.parametrize("name", AWARE)
@settings(max_examples=40)
@given(case=cases())
def test_no_machine_is_given_more_than_it_has(name: str, case: tuple[Topology, list[Bundle], int]) -> None:
    topology, bundles, slots = case
    found = PLACERS[name].place(topology, bundles, rent(slots).vms)
    if isinstance(found, DoesNotFit):
        return
    total, count = {b.operator: 0.0 for b in bundles}, threads(bundles)
    for bundle in bundles:
        total[bundle.operator] += bundle.cpu
    if name == "rsm":
        for vm in found.vms:
            used = sum(
                total[operator] / count[operator] * n
                for slot, groups in found.slots.items()
                if slot.startswith(vm.name + "/")
                for operator, n in groups
            )
            assert used <= vm.slots + 1e-6
    else:
        assert sum(total.values()) <= sum(vm.slots for vm in found.vms) + 1e-6


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=40)
@given(case=cases())
def test_extra_slots_are_reported_and_enough(name: str, case: tuple[Topology, list[Bundle], int]) -> None:
    topology, bundles, slots = case
    try:
        found = place_with_extra_slots(PLACERS[name], topology, bundles, slots)
    except Infeasible:
        return
    assert found.extra_slots >= 0
    assert sum(vm.slots for vm in found.vms) >= slots + found.extra_slots
    for operator, count in threads(bundles).items():
        assert sum(found.threads(operator).values()) == count
