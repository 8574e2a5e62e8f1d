from __future__ import annotations

import pytest

from sluicegate.domain import Edge, Operator, Placement, ProfilePoint, TaskProfile, Topology, Vm
from sluicegate.errors import BadInput
from sluicegate.lab.simulate import Behaviour, advance, begin, simulate, weighted

BLOB = TaskProfile("blob", (ProfilePoint(1, 2.0, 0.02, 0.05), ProfilePoint(10, 12.0, 0.2, 0.3)))
PARSE = TaskProfile("parse", (ProfilePoint(1, 10.0, 0.8, 0.1), ProfilePoint(2, 6.0, 0.9, 0.2)))


def throughput(
    operators: tuple[Operator, ...], placement: Placement, allocation: dict[str, int], pooled: bool = False
) -> dict[str, float]:
    """Rows per second that each operator does when all are flooded."""
    topology = Topology("t", operators, tuple(Edge(f"source:{o.name}", o.name) for o in operators))
    world = begin(topology, 500.0, allocation, seed=1, behaviour=Behaviour(placement=placement, pooled_cpu=pooled))
    advance(world, 10.0)
    seen = advance(world, 1_010.0)
    return {o.name: seen.of(o.name).saturated_per_s or 0.0 for o in operators}


@pytest.mark.parametrize(
    ("profile", "threads", "rate"), [(BLOB, 1, 2.0), (BLOB, 10, 12.0), (BLOB, 4, 16 / 3), (PARSE, 2, 6.0)]
)
def test_the_threads_of_one_slot_do_together_what_their_profile_says(
    profile: TaskProfile, threads: int, rate: float
) -> None:
    operator = Operator("a", profile.points[0].rate_per_s, profile=profile)
    placement = Placement((Vm("vm1", 1),), {"vm1/1": (("a", threads),)})
    assert throughput((operator,), placement, {"a": threads})["a"] == pytest.approx(rate, rel=0.04)


def test_threads_on_slots_of_their_own_do_not_slow_each_other() -> None:
    operator = Operator("a", 10.0, profile=PARSE)
    placement = Placement((Vm("vm1", 2),), {"vm1/1": (("a", 1),), "vm1/2": (("a", 1),)})
    assert throughput((operator,), placement, {"a": 2})["a"] == pytest.approx(20.0, rel=0.04)


def test_different_tasks_on_one_slot_share_its_cpu() -> None:
    """Demands of 0.8 and 0.6 add up to 1.4: each runs at 1/1.4 of its rate."""
    operators = (Operator("a", 10.0, cpu=0.8), Operator("b", 7.0, cpu=0.6))
    placement = Placement((Vm("vm1", 1),), {"vm1/1": (("a", 1), ("b", 1))})
    done = throughput(operators, placement, {"a": 1, "b": 1})
    assert done["a"] == pytest.approx(10.0 / 1.4, rel=0.04)
    assert done["b"] == pytest.approx(7.0 / 1.4, rel=0.04)


def test_tasks_may_use_all_of_a_machine_where_its_cpu_is_pooled() -> None:
    """Demands of 0.8 and 0.6 on one slot of two fit the machine; with 1.6 more on the other they are 3 of 2."""
    operators = (Operator("a", 10.0, cpu=0.8), Operator("b", 7.0, cpu=0.6), Operator("c", 5.0, cpu=1.6))
    alone = Placement((Vm("vm1", 2),), {"vm1/1": (("a", 1), ("b", 1)), "vm1/2": ()})
    assert throughput(operators[:2], alone, {"a": 1, "b": 1}, pooled=True)["a"] == pytest.approx(10.0, rel=0.04)
    full = Placement((Vm("vm1", 2),), {"vm1/1": (("a", 1), ("b", 1)), "vm1/2": (("c", 1),)})
    done = throughput(operators, full, {"a": 1, "b": 1, "c": 1}, pooled=True)
    assert done["a"] == pytest.approx(10.0 / 1.5, rel=0.04)
    assert done["c"] == pytest.approx(5.0 / 1.5, rel=0.04)


def test_tasks_that_fit_on_one_slot_do_not_slow_each_other() -> None:
    operators = (Operator("a", 10.0, cpu=0.5), Operator("b", 7.0, cpu=0.5))
    placement = Placement((Vm("vm1", 1),), {"vm1/1": (("a", 1), ("b", 1))})
    assert throughput(operators, placement, {"a": 1, "b": 1})["a"] == pytest.approx(10.0, rel=0.04)


def test_even_routing_over_uneven_slots_is_limited_by_the_slowest_and_slot_aware_routing_is_not() -> None:
    """I(1) = 10 on one slot, I(2) = 6 on the other: even routing holds min(10 x 3, 3 x 3) = 9/s, slot-aware 16/s."""
    topology = Topology("t", (Operator("a", 10.0, profile=PARSE),), (Edge("source", "a"),))
    placement = Placement((Vm("vm1", 2),), {"vm1/1": (("a", 1),), "vm1/2": (("a", 2),)})
    even = Behaviour(placement=placement, routing={"a": weighted()})
    aware = Behaviour(placement=placement, routing={"a": weighted(10, 3, 3)})
    assert simulate(topology, 8.5, {"a": 3}, 2_000, 1, behaviour=even).stable
    assert not simulate(topology, 9.5, {"a": 3}, 2_000, 1, behaviour=even).stable
    assert simulate(topology, 15.0, {"a": 3}, 2_000, 1, behaviour=aware).stable


def test_a_placement_of_another_number_of_threads_is_refused() -> None:
    topology = Topology("t", (Operator("a", 10.0),), (Edge("source", "a"),))
    placement = Placement((Vm("vm1", 1),), {"vm1/1": (("a", 2),)})
    with pytest.raises(BadInput, match="3 processors but 2 placed threads"):
        simulate(topology, 1.0, {"a": 3}, 10.0, 1, behaviour=Behaviour(placement=placement))


def test_a_batch_is_as_slow_as_its_slowest_task() -> None:
    topology = Topology("t", (Operator("a", 10.0, profile=PARSE),), (Edge("source", "a"),))
    placement = Placement((Vm("vm1", 2),), {"vm1/1": (("a", 1),), "vm1/2": (("a", 2),)})
    result = simulate(topology, 4.5, {"a": 3}, 2_000, 1, mode="micro-batch", behaviour=Behaviour(placement=placement))
    assert result.stable
    assert result.operators["a"].utilisation == pytest.approx(0.5, rel=0.05), "4.5/s of 3 x 3/s"
