from __future__ import annotations

import pytest

from sluicegate.domain import Edge, Operator, Placement, ProfilePoint, TaskProfile, Topology, Vm
from sluicegate.place.live_placement import LivePlacement, footprint

PROFILE = TaskProfile("b", (ProfilePoint(1, 10.0, 0.2, 0.1), ProfilePoint(3, 20.0, 0.6, 0.3)))
TOPOLOGY = Topology(
    "t", (Operator("a", 9.0, cpu=0.4), Operator("b", 9.0, profile=PROFILE)), (Edge("source", "a"), Edge("a", "b"))
)
NOW = Placement((Vm("n1", 2), Vm("n2", 2)), {"n1/1": (("a", 1),), "n1/2": (("b", 3),), "n2/1": ()}, 1, ("planned",))


def test_an_instance_nobody_measured_counts_for_what_it_declares_and_stays() -> None:
    live = LivePlacement(TOPOLOGY, NOW, {("a", "n1/1"): 0.1})
    assert [one.bundle.operator for one in live.may_move] == ["a"]
    assert live.load_of(0) == pytest.approx((0.1 + 0.6) / 2)


def test_a_move_changes_loads_and_the_placement() -> None:
    live = LivePlacement(TOPOLOGY, NOW, {("a", "n1/1"): 0.5, ("b", "n1/2"): 0.3})
    live.move(live.may_move[0], 2)
    assert (live.load_of(0), live.load_of(1)) == pytest.approx((0.15, 0.25))
    after = live.placement("moved")
    assert after.threads("a") == {"n2/1": 1}
    assert (after.extra_slots, after.reasons) == (1, ("planned", "moved"))
    assert [one.bundle.operator for one in live.may_move] == ["b"]
    assert live.released() == ()


def test_a_fleet_without_instances_has_nothing_to_pack() -> None:
    assert LivePlacement(TOPOLOGY, Placement((Vm("n1", 2),), {}), {}).utilisation() == 1.0


def test_a_profile_tells_what_threads_use() -> None:
    found = footprint(TOPOLOGY, "b", 2)
    assert (found.cpu, found.memory) == pytest.approx((0.4, 0.2))
    assert footprint(TOPOLOGY, "a", 9).cpu == 1.0
