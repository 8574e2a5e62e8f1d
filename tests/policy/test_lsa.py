from __future__ import annotations

import pytest

from sluicegate.domain import ProfilePoint, TaskProfile
from sluicegate.policy.allotment import Want
from sluicegate.policy.papers.lsa import Lsa, allot

BLOB = TaskProfile("blob", (ProfilePoint(1, 2.0, 0.07, 0.24), ProfilePoint(50, 30.0, 0.77, 0.31)))


def want(rate: float, most: int = 999) -> Want:
    return Want("blob", BLOB, rate, 1, most)


def test_lsa_is_named_lsa() -> None:
    assert Lsa().name == "lsa"


def test_one_thread_for_each_full_rate_of_one_thread() -> None:
    part = allot(want(50.0))
    assert len(part.bundles) == 25
    assert {(b.threads, b.cpu, b.memory, b.full) for b in part.bundles} == {(1, 0.07, 0.24, False)}


def test_the_last_thread_is_scaled_by_its_share_of_the_rate() -> None:
    part = allot(want(51.5))
    assert len(part.bundles) == 26
    assert (part.bundles[-1].cpu, part.bundles[-1].memory) == pytest.approx((0.0525, 0.18))


def test_only_the_single_thread_point_counts() -> None:
    single = Want("blob", TaskProfile("blob", BLOB.points[:1]), 77.0, 1, 999)
    assert allot(single).bundles == allot(want(77.0)).bundles


def test_the_most_threads_cut_the_rate_carried() -> None:
    assert allot(want(50.0, most=3)).carried_per_s == 6.0
