from __future__ import annotations

import pytest

from sluicegate.domain import Bundle, Edge, Operator, Topology, Vm
from sluicegate.errors import BadInput
from sluicegate.place.sweep import Slots, by_task, sweeps

PAIR = Topology("pair", (Operator("b", 1.0), Operator("a", 1.0)), (Edge("source:x", "a"), Edge("a", "b")))


def test_sources_come_first_and_sinks_last() -> None:
    bundles = [Bundle(name, 1, 0.1, 0.0) for name in ("sink", "b", "a", "source:x")]
    assert list(by_task(PAIR, bundles, PAIR.order)) == ["source:x", "a", "b", "sink"]


def test_bundles_of_another_topology_are_refused() -> None:
    with pytest.raises(BadInput, match="'c', which is no operator of 'pair'"):
        by_task(PAIR, [Bundle("c", 1, 0.1, 0.1)], PAIR.order)


def test_a_sweep_takes_one_bundle_of_each_task() -> None:
    queues = [[Bundle("a", n, 0.1, 0.1) for n in (1, 2, 3)], [Bundle("b", 4, 0.1, 0.1)]]
    assert [bundle.threads for bundle in sweeps(queues)] == [1, 4, 2, 3]


def test_slots_are_named_after_their_vm_from_one() -> None:
    slots = Slots.of([Vm("x", 2), Vm("y", 1)])
    assert slots.names == ("x/1", "x/2", "y/1")
    assert slots.vm == (0, 0, 1)


def test_two_vms_of_one_name_are_refused() -> None:
    with pytest.raises(BadInput, match="one name"):
        Slots.of([Vm("x", 2), Vm("x", 1)])


def test_threads_of_one_operator_on_one_slot_add_up_and_idle_slots_stay() -> None:
    placed = Slots.of([Vm("x", 2)]).placement([(0, "a", 2), (0, "b", 1), (0, "a", 3)], "why")
    assert placed.slots == {"x/1": (("a", 5), ("b", 1)), "x/2": ()}
    assert placed.reasons == ("why",)
