"""A profile that no longer fits what is observed is corrected, and the plan says so."""

from __future__ import annotations

from dataclasses import replace

from sluicegate.domain import Edge, Operator, ProfilePoint, TaskProfile, Topology
from sluicegate.model.task_profile import corrected
from sluicegate.policy.demand import situation_at
from sluicegate.policy.papers.mba import Mba

PROFILE = TaskProfile("a", (ProfilePoint(1, 80.0, 0.4, 0.1), ProfilePoint(2, 120.0, 0.6, 0.1)), service_per_s=100.0)
ONE = Topology("one", (Operator("a", 100.0, profile=PROFILE),), (Edge("source", "a"),))


def observed(service_per_s: float) -> Topology:
    return ONE.with_operators((replace(ONE.operator("a"), service_per_s=service_per_s),))


def test_what_is_near_the_profile_leaves_it_alone() -> None:
    assert corrected(observed(110.0).operator("a")) == (PROFILE, None)


def test_what_is_far_off_but_uncertain_leaves_it_alone() -> None:
    assert corrected(observed(60.0).operator("a"), rsd=0.1)[1] is None
    assert corrected(observed(60.0).operator("a"), rsd=0.01)[1] is not None


def test_a_plan_takes_rates_as_observed_and_says_why() -> None:
    before = Mba().propose(None, situation_at(ONE, 100.0))[1]
    after = Mba().propose(None, situation_at(observed(50.0), 100.0))[1]
    assert before.processors["a"] == 2
    assert after.processors["a"] == 3  # a full slot does 60/s now, one thread 40/s
    assert any("measured at 100 rows/s a task, observed 50 rows/s" in reason for reason in after.reasons)


def test_a_profile_that_knows_no_rate_of_its_own_is_never_corrected() -> None:
    bare = replace(PROFILE, service_per_s=None)
    assert corrected(Operator("a", 5.0, profile=bare)) == (bare, None)
