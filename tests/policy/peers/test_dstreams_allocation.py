"""Spark DStreams' allocation by the batches' processing time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sluicegate.domain import (
    Batch,
    BatchCosts,
    Edge,
    Limits,
    Observation,
    Operator,
    OperatorObservation,
    Situation,
    Topology,
)
from sluicegate.errors import BadInput
from sluicegate.policy.peers import DStreamsAllocation

TWO = Topology("t", (Operator("a", 10.0), Operator("b", 10.0)), (Edge("source", "a"), Edge("a", "b")))


def _at(now_s: float, ratio: float, running: int, limits: Limits | None = None, other: float = 0.1) -> Situation:
    operators = {
        "a": OperatorObservation(batches=(Batch(1.0, 1, 5 * ratio), Batch(1.0, 1, 15 * ratio))),
        "b": OperatorObservation(batches=(Batch(1.0, 1, 10 * other),)),
    }
    seen = Observation(now_s, 10.0, {"a": running, "b": running}, operators)
    return Situation(now_s, TWO, seen, 10.0, {}, limits=limits or Limits())


def _second(ratio: float, running: int = 4, limits: Limits | None = None) -> int:
    policy = DStreamsAllocation(batch_interval_s=10.0)
    memory, _ = policy.propose(policy.start(), _at(0.0, ratio, running, limits))
    return policy.propose(memory, _at(60.0, ratio, running, limits))[1].total


def test_ratios_move_the_executors_only_at_and_beyond_the_thresholds() -> None:
    assert [_second(ratio) for ratio in (0.3, 0.31, 0.89, 0.9)] == [7, 8, 8, 9]


def test_the_rounded_ratio_is_added_half_up() -> None:
    assert [_second(ratio) for ratio in (1.4, 1.5, 2.5, 4.0)] == [9, 10, 11, 12]


def test_the_latest_operator_counts() -> None:
    policy = DStreamsAllocation(batch_interval_s=10.0)
    memory, _ = policy.propose(policy.start(), _at(0.0, 0.1, 4, other=3.0))
    assert policy.propose(memory, _at(60.0, 0.1, 4, other=3.0))[1].total == 11


def test_executors_come_with_all_their_slots() -> None:
    assert _second(1.0, running=4, limits=Limits(slots_per_executor=4)) == 12


def test_nothing_is_decided_within_the_minute_and_the_mean_of_it_counts() -> None:
    policy = DStreamsAllocation(batch_interval_s=10.0)
    memory, totals = policy.start(), []
    for now_s, ratio in ((0.0, 1.0), (20.0, 1.0), (40.0, 1.0), (59.0, 0.0), (60.0, 0.0)):
        memory, proposal = policy.propose(memory, _at(now_s, ratio, 4))
        totals.append(proposal.total)
    assert totals == [8] * 5  # the mean of 1, 1, 1 and twice the other's 0.1
    assert proposal.reasons == ("batches take 0.64 of their interval, between 0.3 and 0.9: kept",)


def test_a_look_in_which_no_batch_ended_does_not_count() -> None:
    batched = TWO.with_operators(tuple(replace(o, batch=BatchCosts(0.2, 0.01)) for o in TWO.operators))
    policy, late = DStreamsAllocation(batch_interval_s=10.0), replace(_at(0.0, 2.0, 4), topology=batched)
    nothing = replace(late, observation=replace(late.observation, operators={}))
    memory, _ = policy.propose(policy.start(), late)
    for now_s in (20.0, 40.0):
        memory, _ = policy.propose(memory, replace(nothing, now_s=now_s))
    assert policy.propose(memory, replace(late, now_s=60.0))[1].total == 10
    memory, _ = policy.propose(policy.start(), nothing)
    assert policy.propose(memory, replace(nothing, now_s=60.0))[1].reasons == ("no batch has ended: kept",)


def test_what_was_decided_stands_while_it_starts_up() -> None:
    policy = DStreamsAllocation(batch_interval_s=10.0)
    memory, _ = policy.propose(policy.start(), _at(0.0, 2.0, 4))
    memory, decided = policy.propose(memory, _at(60.0, 2.0, 4))
    memory, held = policy.propose(memory, _at(90.0, 2.0, 4))
    memory, again = policy.propose(memory, _at(120.0, 2.0, 4))
    assert (decided.total, held.total, again.total) == (10, 10, 10)


def test_the_last_executor_stays() -> None:
    assert _second(0.0, running=1, limits=Limits(slots_per_executor=8)) >= 2


def test_utilisation_stands_in_for_batches_that_were_not_seen() -> None:
    busy = Observation(0.0, 10.0, {"a": 4, "b": 4}, {"a": OperatorObservation(utilisation=0.95)})
    policy = DStreamsAllocation()
    memory, _ = policy.propose(policy.start(), Situation(0.0, TWO, busy, 10.0, {}))
    assert policy.propose(memory, Situation(60.0, TWO, busy, 10.0, {}))[1].total == 9


def test_a_budget_is_kept_and_said_to_be_too_small() -> None:
    policy = DStreamsAllocation(batch_interval_s=10.0)
    limits = Limits(budget=9)
    memory, _ = policy.propose(policy.start(), _at(0.0, 4.0, 4, limits))
    _, proposal = policy.propose(memory, _at(60.0, 4.0, 4, limits))
    assert proposal.total == 9
    assert not proposal.feasible
    assert proposal.reasons[-1] == "12 processors wanted, 9 allowed"


def test_thresholds_that_cross_are_refused() -> None:
    with pytest.raises(BadInput, match="ratio"):
        DStreamsAllocation(up_ratio=0.2)
