"""Executors and nodes that follow a plan, with counts in place of processes: the real ones are in test_executors."""

from __future__ import annotations

import pytest

from headgate.errors import BadInput
from headgate.spark.fleet import Patience, Shape
from headgate.spark.ground import ground_of
from headgate.spark.plan_file import OperatorPlan, Plan


def plan_of(*processors: int) -> Plan:
    return Plan(1, {f"o{i}": OperatorPlan(k) for i, k in enumerate(processors)})


def test_there_is_a_slot_for_every_processor_within_the_limits() -> None:
    shape = Shape(slots_per_executor=2, least=1, most=4)
    assert [shape.executors_for(plan_of(*k)) for k in ((1,), (2, 1), (4, 4), (30, 9))] == [1, 2, 4, 4]


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
