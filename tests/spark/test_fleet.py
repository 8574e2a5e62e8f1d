"""Executors and nodes that follow a plan, with counts in place of processes: the real ones are in test_executors."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from sluicegate.domain import Edge, Operator, Topology, Vm
from sluicegate.errors import BadInput
from sluicegate.place.placer import DoesNotFit
from sluicegate.runlog.plan_file import OperatorPlan, Plan
from sluicegate.spark.act.executors import leaving
from sluicegate.spark.act.fleet import Patience, Shape
from sluicegate.spark.act.scheduler import Executor
from sluicegate.spark.act.seating import Seating
from sluicegate.spark.ground import ground_of


def plan_of(*processors: int) -> Plan:
    return Plan(1, {f"o{i}": OperatorPlan(k) for i, k in enumerate(processors)})


def seating_of(plan: Plan) -> Seating:
    edges = tuple(Edge(before, name) for before, name in pairwise(("source", *plan.operators)))
    return Seating(Topology("t", tuple(Operator(name, 9.0) for name in plan.operators), edges))


def executors_on(**cores: int) -> list[Executor]:
    return [Executor(host, host, count, 0, 0, draining=False) for host, count in cores.items()]


def test_there_is_a_slot_for_every_processor_within_the_limits() -> None:
    shape = Shape(slots_per_executor=2, least=1, most=4)
    plans = [plan_of(*k) for k in ((1,), (2, 1), (4, 4), (30, 9))]
    assert [shape.within(seating_of(plan).executors_for(plan, 2)) for plan in plans] == [1, 2, 4, 4]


def test_an_executor_does_not_stretch_over_two_nodes() -> None:
    assert Shape(slots_per_executor=2).on([Vm("n1", 3), Vm("n2", 1), Vm("n3", 4)]) == 3


def test_processors_of_one_operator_are_apart_and_next_to_those_they_read_from() -> None:
    plan = plan_of(2, 2)
    assert seating_of(plan).hosts(plan, executors_on(a=2, b=2)) == {"o0": ("a", "b"), "o1": ("a", "b")}


def test_a_host_counts_for_all_of_its_executors() -> None:
    plan = plan_of(3)
    two_on_a = [replace(executor, host="a") for executor in executors_on(a=1, b=2)]
    assert seating_of(plan).hosts(plan, two_on_a) == {"o0": ("a", "a", "a")}


def test_nobody_is_seated_while_some_have_no_slot() -> None:
    plan = plan_of(2, 2)
    answer = seating_of(plan).hosts(plan, executors_on(a=2, b=1))
    assert isinstance(answer, DoesNotFit)
    assert answer.why.startswith("o1: an instance needs 100.0% CPU")


def test_executors_leave_host_by_host_so_that_nodes_become_free() -> None:
    here = [Executor(f"{host}{n}", host, 1, int(host == "b"), n, False) for host in "ba" for n in (1, 2)]
    alone = Executor("c1", "c", 1, 9, 0, draining=False)
    assert [executor.id for executor in leaving([*here, alone], 4)] == ["c1", "a2", "a1", "b2"]


def test_more_is_wanted_at_once_and_less_only_after_a_while() -> None:
    patience = Patience(settle_s=10.0)
    wanted = [
        patience.settled(at, want, have) for at, want, have in ((0.0, 2, 2), (1.0, 5, 2), (2.0, 1, 5), (11.0, 1, 5))
    ]
    assert wanted == [2, 5, 5, 5]
    assert patience.settled(12.5, 1, 5) == 1


def test_a_shape_that_cannot_be_is_refused() -> None:
    with pytest.raises(BadInput, match="least <= most"):
        Shape(1, 3, 2)


def test_executors_are_refused_where_there_are_none() -> None:
    with pytest.raises(BadInput, match="no executors"):
        ground_of("local[4]", "1:4")


def test_a_range_of_executors_must_be_numbers() -> None:
    with pytest.raises(BadInput, match="LEAST:MOST"):
        ground_of("spark://host:7077", "few:many")
