"""Dhalion's growth by backpressure, and our reading of its decreases."""

from __future__ import annotations

import pytest
from tests.policy.peers.driving import driven

from sluicegate.domain import Edge, Limits, Observation, Operator, OperatorObservation, Proposal, Situation, Topology
from sluicegate.errors import BadInput
from sluicegate.policy.peers import Dhalion

TWO = Topology("t", (Operator("a", 10.0), Operator("b", 10.0)), (Edge("source", "a"), Edge("a", "b")))


def _at(
    now_s: float, backpressure: float | None, running: int, queue: float | None = None, rate: float = 30.0
) -> Situation:
    operators = {"a": OperatorObservation(backpressure=backpressure, queue_rows=queue)}
    seen = Observation(now_s, rate, {"a": running, "b": 4}, operators)
    return Situation(now_s, TWO, seen, rate, {"a": rate, "b": rate}, limits=Limits())


def _drive(situations: list[Situation]) -> list[Proposal]:
    return driven(Dhalion(), situations)


def _sizes(situations: list[Situation]) -> list[int]:
    return [proposal.processors["a"] for proposal in _drive(situations)]


def test_the_factor_makes_up_for_the_time_upstream_was_held_back() -> None:
    assert [_sizes([_at(0.0, share, 4)])[0] for share in (0.2, 0.5, 0.6, 0.75)] == [5, 8, 10, 16]


def test_growth_is_at_most_fourfold_also_at_the_pole() -> None:
    assert [_sizes([_at(0.0, share, 4)])[0] for share in (0.76, 0.999, 1.0)] == [16, 16, 16]


def test_backpressure_below_the_noise_is_none() -> None:
    assert [_sizes([_at(0.0, share, 4)])[0] for share in (0.019, 0.02)] == [4, 5]


def test_only_the_operator_that_holds_back_grows() -> None:
    assert _drive([_at(0.0, 0.5, 4)])[0].processors == {"a": 8, "b": 4}


def test_between_two_looks_the_last_answer_stands() -> None:
    assert _sizes([_at(0.0, 0.5, 4), _at(299.0, 0.5, 8), _at(300.0, 0.5, 8)]) == [8, 8, 16]


def test_a_nearly_empty_queue_gives_up_a_fifth() -> None:
    assert [_sizes([_at(0.0, 0.0, n, queue=float(n))])[0] for n in (1, 2, 4, 5, 10, 20)] == [1, 1, 3, 4, 8, 16]


def test_a_queue_that_is_not_empty_or_not_known_gives_up_nothing() -> None:
    assert _sizes([_at(0.0, 0.0, 10, queue=10.1)]) == [10]
    assert _sizes([_at(0.0, 0.0, 10)]) == [10]


def test_nothing_is_given_up_while_anything_is_held_back() -> None:
    operators = {"a": OperatorObservation(backpressure=0.5), "b": OperatorObservation(queue_rows=0.0)}
    seen = Observation(0.0, 30.0, {"a": 4, "b": 9}, operators)
    assert _drive([Situation(0.0, TWO, seen, 30.0, {})])[0].processors == {"a": 8, "b": 9}


def test_a_decrease_that_failed_is_not_repeated_at_the_same_load() -> None:
    trial = [_at(0.0, 0.0, 5, queue=0.0), _at(300.0, 0.1, 4), _at(600.0, 0.0, 5, queue=0.0)]
    assert _sizes(trial) == [4, 5, 5]
    assert "4 were not enough at 30 rows/s" in _drive(trial)[-1].reasons[0]


def test_a_decrease_that_failed_is_tried_again_when_the_load_has_fallen() -> None:
    trial = [_at(0.0, 0.0, 5, queue=0.0), _at(300.0, 0.1, 4)]
    assert _sizes([*trial, _at(600.0, 0.0, 5, queue=0.0, rate=27.0)])[-1] == 5
    assert _sizes([*trial, _at(600.0, 0.0, 5, queue=0.0, rate=26.9)])[-1] == 4


def test_a_factor_below_one_is_refused() -> None:
    with pytest.raises(BadInput, match="most_factor"):
        Dhalion(most_factor=0.5)
