"""Kubernetes' horizontal pod autoscaler."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.policy.peers.driving import driven

from sluicegate.domain import Edge, Limits, Observation, Operator, OperatorObservation, Proposal, Situation, Topology
from sluicegate.errors import BadInput
from sluicegate.policy.peers import Hpa

TWO = Topology("t", (Operator("a", 10.0), Operator("b", 10.0)), (Edge("source", "a"), Edge("a", "b")))


def _at(now_s: float, utilisation: float | None, running: int, limits: Limits | None = None) -> Situation:
    operators = {"a": OperatorObservation(utilisation=utilisation), "b": OperatorObservation(utilisation=0.5)}
    seen = Observation(now_s, 30.0, {"a": running, "b": 4}, operators)
    return Situation(now_s, TWO, seen, 30.0, {"a": 30.0, "b": 30.0}, limits=limits or Limits())


def _drive(situations: list[Situation]) -> list[Proposal]:
    return driven(Hpa(target=0.5), situations)


def _sizes(situations: list[Situation]) -> list[int]:
    return [proposal.processors["a"] for proposal in _drive(situations)]


def test_each_operator_grows_by_its_own_utilisation_over_the_target() -> None:
    proposal = _drive([_at(0.0, 0.8, 5)])[0]
    assert proposal.processors == {"a": 8, "b": 4}
    assert proposal.reasons[0] == "a: 5 x 0.8 / 0.5: 8, at most 8 in 300 s: 8"


def test_a_miss_of_exactly_the_tolerance_is_left_alone() -> None:
    assert _sizes([_at(0.0, 0.55, 20)]) == [20]
    assert _sizes([_at(0.0, 0.551, 20)]) == [23]


def test_a_decrease_waits_for_the_largest_recommendation_of_five_minutes() -> None:
    falling = [_at(0.0, 0.5, 10), _at(60.0, 0.4, 10), _at(120.0, 0.2, 10), _at(299.0, 0.2, 10)]
    assert _sizes([*falling, _at(314.0, 0.2, 10)]) == [10, 10, 10, 10, 8]
    assert _sizes([*falling, _at(314.0, 0.2, 10), _at(375.0, 0.2, 8)]) == [10, 10, 10, 10, 8, 4]


def test_an_increase_does_not_wait() -> None:
    assert _sizes([_at(0.0, 0.5, 10), _at(15.0, 1.0, 10)]) == [10, 20]


def test_between_two_looks_the_last_answer_stands() -> None:
    assert _sizes([_at(0.0, 0.5, 10), _at(14.0, 1.0, 10), _at(15.0, 1.0, 10)]) == [10, 10, 20]


def test_an_idle_operator_keeps_one() -> None:
    assert _sizes([_at(0.0, 0.0, 10), _at(300.0, 0.0, 10)]) == [10, 1]


def test_an_unmeasured_utilisation_is_the_load_over_the_capacity() -> None:
    assert _sizes([_at(0.0, None, 3)]) == [6]  # 30 of 30 rows/s


def test_limits_cut_what_it_wants() -> None:
    proposal = _drive([_at(0.0, 1.0, 10, Limits(most=12))])[0]
    assert proposal.processors["a"] == 12
    assert not proposal.feasible


def test_what_was_asked_for_stays_until_it_runs() -> None:
    busy = _at(15.0, 1.0, 1)
    pending = replace(busy, observation=replace(busy.observation, requested={"a": 3, "b": 4}))
    assert _sizes([_at(0.0, 0.5, 1), pending]) == [1, 3]


def test_a_target_above_one_is_refused() -> None:
    with pytest.raises(BadInput, match="target"):
        Hpa(target=1.2)
