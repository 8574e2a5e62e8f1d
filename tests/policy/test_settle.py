"""Where policies come to rest, and those that never do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluicegate.domain import Edge, Goal, Limits, Operator, Proposal, Situation, Topology
from sluicegate.errors import BadInput
from sluicegate.policy.peers import (
    Dhalion,
    Ds2,
    DStreamsAllocation,
    FlinkAutoscaler,
    Hindsight,
    Hpa,
    Keda,
    RecentPeak,
    SparkCoreAllocation,
    StaticPeak,
)
from sluicegate.policy.policy import Policy
from sluicegate.policy.settle import settle

REACTIVE: tuple[Policy[Any], ...] = (
    Hpa(),
    Keda(),
    DStreamsAllocation(),
    FlinkAutoscaler(),
    SparkCoreAllocation(),
    Dhalion(),
)
ONE = Topology("t", (Operator("a", 100.0),), (Edge("source", "a"),))


def _chain(length: int) -> Topology:
    operators = tuple(Operator(f"o{i}", 100.0 * (1 + i % 4)) for i in range(length))
    edges = (Edge("source", "o0"), *(Edge(f"o{i}", f"o{i + 1}") for i in range(length - 1)))
    return Topology("t", operators, edges)


@dataclass(frozen=True)
class Scripted:
    """Proposes the sizes of a script over and over; remembers how far it is."""

    script: tuple[int, ...]
    name: str = "scripted"

    def start(self) -> int:
        return 0

    def propose(self, memory: int, situation: Situation) -> tuple[int, Proposal]:
        return memory + 1, Proposal({"a": self.script[memory % len(self.script)]}, (f"turn {memory}",))


@dataclass(frozen=True)
class OneMoreForever:
    """Never content."""

    name: str = "one-more"

    def start(self) -> None:
        return None

    def propose(self, memory: None, situation: Situation) -> tuple[None, Proposal]:
        return None, Proposal({"a": situation.running["a"] + 1}, ("more",))


def test_a_planner_without_memory_settles_in_two_calls() -> None:
    proposal, steps = settle(Ds2(), _chain(10), 930.0, Goal(), Limits())
    assert (proposal.total, steps) == (59, 2)
    assert proposal.feasible


def test_a_planner_without_memory_that_lacks_room_settles_in_three_calls() -> None:
    proposal, steps = settle(Ds2(), ONE, 930.0, Goal(), Limits(budget=4))
    assert (proposal.total, steps) == (4, 3)
    assert not proposal.feasible


@pytest.mark.parametrize(
    ("policy", "total"),
    [
        (Hpa(target=0.5), 9),  # 450 of 900 rows/s
        (RecentPeak(), 6),  # 540 rows/s
        (StaticPeak(), 5),
        (Dhalion(), 5),  # a fifth less would be 4: too few
        (FlinkAutoscaler(), 10),  # sized with 20 minutes of backlog to catch up with, then within its band
        (SparkCoreAllocation(), 5),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_a_reactive_policy_comes_to_rest(policy: Policy[Any], total: int) -> None:
    proposal, steps = settle(policy, ONE, 450.0, Goal(), Limits())
    assert proposal.total == total
    assert proposal.feasible
    assert "converged after" in proposal.reasons[-1]
    assert 90 < steps < 400


def test_a_policy_that_swings_is_told_to_and_its_most_is_taken() -> None:
    proposal, steps = settle(Scripted((5, 5, 8, 6)), ONE, 450.0, Goal(), Limits())
    assert proposal.processors == {"a": 8}
    assert not proposal.feasible
    assert proposal.reasons[-1] == "does not converge: 5 to 8 processors in turn within 240 s, the most taken"
    assert steps < 20


def test_keda_with_a_threshold_far_below_the_flow_never_rests() -> None:
    proposal, _ = settle(Keda(partitions=20), ONE, 450.0, Goal(), Limits())
    assert proposal.total == 20
    assert not proposal.feasible
    assert "does not converge: 1 to 20" in proposal.reasons[-1]


def test_swings_without_a_pattern_are_found_when_the_steps_are_used_up() -> None:
    script = tuple(np.random.default_rng(5).integers(5, 9, 401).tolist())
    proposal, steps = settle(Scripted(script), ONE, 450.0, Goal(), Limits())
    assert (proposal.total, steps) == (8, 400)
    assert not proposal.feasible
    assert "does not converge" in proposal.reasons[-1]


def test_a_policy_still_on_its_way_is_said_to_be() -> None:
    proposal, steps = settle(OneMoreForever(), ONE, 450.0, Goal(), Limits(), most_steps=50)
    assert (proposal.total, steps) == (51, 50)
    assert not proposal.feasible
    assert "not converged after 50 steps" in proposal.reasons[-1]


def test_a_backlog_that_outlasts_the_steps_is_mentioned() -> None:
    # 1 of 451 rows/s is to spare, so the backlog of the first two minutes takes 12 hours
    slow = Scripted((1, 1, *[5] * 398))
    proposal, steps = settle(slow, Topology("t", (Operator("a", 90.2),), ONE.edges), 450.0, Goal(), Limits())
    assert (proposal.total, steps) == (5, 400)
    assert "a backlog is not drained yet" in proposal.reasons[-1]
    assert proposal.feasible


def test_settling_starts_from_the_least_and_keeps_to_the_limits() -> None:
    proposal, _ = settle(Hpa(), ONE, 1.0, Goal(), Limits(least=3))
    assert proposal.total == 3
    for policy in REACTIVE:
        assert settle(policy, ONE, 4500.0, Goal(), Limits(most=7))[0].total == 7


def test_no_load_rests_at_the_least() -> None:
    for policy in (*REACTIVE, Ds2(), RecentPeak(), StaticPeak()):
        assert settle(policy, _chain(3), 0.0, Goal(), Limits())[0].total == 3


def test_a_load_that_is_not_a_number_is_refused() -> None:
    with pytest.raises(BadInput, match="rate_per_s"):
        settle(Ds2(), ONE, -1.0, Goal(), Limits())
    with pytest.raises(BadInput, match="most_steps"):
        settle(Ds2(), ONE, 1.0, Goal(), Limits(), most_steps=0)


@settings(max_examples=15, deadline=None)
@given(st.floats(0, 5000), st.integers(1, 4))
def test_a_sized_pipeline_carries_its_load(rate: float, length: int) -> None:
    chain = _chain(length)
    sized: tuple[Policy[Any], ...] = (RecentPeak(), StaticPeak(), Hindsight((rate,)))
    for policy in sized:
        proposal, _ = settle(policy, chain, rate, Goal(), Limits())
        assert all(proposal.processors[o.name] * o.service_per_s > rate for o in chain.operators)
