"""KEDA's scaling by lag."""

from __future__ import annotations

import pytest
from tests.policy.peers.driving import driven

from sluicegate.domain import Edge, Limits, Observation, Operator, OperatorObservation, Proposal, Situation, Topology
from sluicegate.errors import BadInput
from sluicegate.policy.peers import Keda

TWO = Topology("t", (Operator("a", 10.0), Operator("b", 10.0)), (Edge("source", "a"), Edge("a", "b")))


def _at(now_s: float, lag: float | None, running: int = 4, total: float | None = None) -> Situation:
    operators = {"a": OperatorObservation(queue_rows=lag)}
    seen = Observation(now_s, 30.0, {"a": running, "b": 4}, operators, backlog_rows=total)
    return Situation(now_s, TWO, seen, 30.0, {}, limits=Limits())


def _drive(situations: list[Situation]) -> list[Proposal]:
    return driven(Keda(lag_threshold_rows=100.0, partitions=16), situations)


def _sizes(situations: list[Situation]) -> list[int]:
    return [proposal.processors["a"] for proposal in _drive(situations)]


def test_a_processor_is_there_for_each_threshold_of_lag() -> None:
    assert [_sizes([_at(0.0, lag)])[0] for lag in (400.0, 401.0, 500.0, 501.0)] == [4, 5, 5, 6]


def test_there_are_never_more_than_partitions() -> None:
    assert _sizes([_at(0.0, 1e9)]) == [16]
    assert "16 partitions" in _drive([_at(0.0, 1e9)])[0].reasons[0]


def test_the_lag_is_polled_every_half_minute() -> None:
    assert _sizes([_at(0.0, 400.0), _at(29.0, 900.0), _at(30.0, 900.0)]) == [4, 4, 9]


def test_fewer_come_after_the_cool_down_and_then_the_largest_of_it() -> None:
    situations = [_at(0.0, 1000.0, 10), _at(60.0, 600.0, 10), _at(299.0, 0.0, 10), _at(330.0, 0.0, 10)]
    assert _sizes(situations) == [10, 10, 10, 6]
    assert _sizes([*situations, _at(360.0, 0.0, 6)])[-1] == 1


def test_an_operator_whose_lag_is_unknown_keeps_what_it_has() -> None:
    assert _drive([_at(0.0, 900.0)])[0].processors == {"a": 9, "b": 4}


def test_the_pipelines_backlog_lies_at_the_operators_that_read_the_sources() -> None:
    assert _drive([_at(0.0, None, total=1200.0)])[0].processors == {"a": 12, "b": 4}


def test_nothing_known_changes_nothing() -> None:
    assert _drive([_at(0.0, None)])[0].processors == {"a": 4, "b": 4}


def test_a_threshold_of_zero_is_refused() -> None:
    with pytest.raises(BadInput, match="lag_threshold_rows"):
        Keda(lag_threshold_rows=0.0)
