"""Limits of single operators, and K_max, bind every policy."""

from __future__ import annotations

import pytest

from sluicegate.control.loop import start, tick
from sluicegate.control.settings import settings_for
from sluicegate.domain import Edge, Goal, Limits, Observation, Operator, Situation, Sojourn, Topology
from sluicegate.policy.papers.drs import Drs
from sluicegate.policy.sluicegate import Memory, SluicegatePolicy

TWO = Topology("t", (Operator("a", 10.0), Operator("b", 10.0)), (Edge("source", "a"), Edge("a", "b")))


@pytest.mark.parametrize("policy", ["ds2", "es-stream", "mc-stream", "recent-peak", "spark-core", "keda", "lsa", "mba"])
def test_an_operator_whose_number_is_fixed_counts_in_the_budget(policy: str) -> None:
    limits = Limits(budget=6, most_of={"a": 4}, least_of={"a": 4})
    state = start(settings_for(policy, TWO, limits=limits))
    for at_s in range(120):
        state, decision = tick(state, Observation(float(at_s), 35.0, {"a": 4, "b": 1}), float(at_s))
    assert decision.running["a"] == 4
    assert sum(decision.running.values()) <= 6


def test_ds2_plans_beside_an_operator_whose_number_is_fixed() -> None:
    topology = Topology("t", TWO.operators, (Edge("source", "a"), Edge("a", "b", 3.0)))
    limits = Limits(budget=6, most_of={"a": 4}, least_of={"a": 4})
    _, decision = tick(
        start(settings_for("ds2", topology, limits=limits)), Observation(0.0, 25.0, {"a": 4, "b": 1}), 0.0
    )
    assert decision.proposal is not None
    assert dict(decision.proposal.processors) == {"a": 4, "b": 2}


def test_a_large_fixed_stage_does_not_starve_the_next() -> None:
    limits = Limits(most_of={"a": 200}, least_of={"a": 200})
    seen = Observation(0.0, 25.0, {"a": 200, "b": 1})
    now = Situation(0.0, TWO, seen, 25.0, {"a": 25.0, "b": 25.0}, Goal(mean_s=1.0), limits)
    _, found = SluicegatePolicy().propose(Memory(), now)
    assert found.feasible
    assert found.processors["b"] >= 3


@pytest.mark.parametrize(("rate", "k"), [(25.0, 2), (5.0, 5)])
def test_k_max_binds_between_t_min_and_t_max(rate: float, k: int) -> None:
    seen = Observation(0.0, rate, {"a": k, "b": k}, sojourn=Sojourn(0.7))
    now = Situation(0.0, TWO, seen, rate, {"a": rate, "b": rate}, Goal(mean_s=1.0))
    assert Drs(k_max=5).propose(None, now)[1].total <= 5
