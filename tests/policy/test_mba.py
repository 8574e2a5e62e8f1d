from __future__ import annotations

from sluicegate.domain import Bundle, ProfilePoint, TaskProfile
from sluicegate.policy.allotment import Want
from sluicegate.policy.papers.mba import Mba, allot

BLOB = TaskProfile(
    "blob",
    (
        ProfilePoint(1, 2.0, 0.07, 0.24),
        ProfilePoint(20, 10.0, 0.15, 0.26),
        ProfilePoint(30, 20.0, 0.54, 0.29),
        ProfilePoint(50, 30.0, 0.77, 0.31),
    ),
)
PARSE = TaskProfile("parse", (ProfilePoint(1, 310.0, 0.85, 0.36),))


def bundles(profile: TaskProfile, rate: float, most: int = 999) -> list[tuple[int, float, bool]]:
    part = allot(Want(profile.task, profile, rate, 1, most))
    return [(b.threads, b.cpu, b.full) for b in part.bundles]


def test_mba_is_named_mba() -> None:
    assert Mba().name == "mba"


def test_full_bundles_have_a_whole_slot_whatever_they_use() -> None:
    first = allot(Want("blob", BLOB, 50.0, 1, 999)).bundles[0]
    assert first == Bundle("blob", 50, 1.0, 1.0, full=True)


def test_the_rest_gets_the_fewest_measured_threads() -> None:
    assert bundles(BLOB, 50.0) == [(50, 1.0, True), (30, 0.54, False)]
    assert bundles(BLOB, 41.0) == [(50, 1.0, True), (30, 0.54, False)]
    assert bundles(BLOB, 40.0) == [(50, 1.0, True), (20, 0.15, False)]


def test_a_rest_for_one_thread_is_scaled() -> None:
    assert bundles(BLOB, 61.0) == [(50, 1.0, True), (50, 1.0, True), (1, 0.035, False)]


def test_a_rate_of_exactly_the_peak_is_one_full_bundle_and_nothing_else() -> None:
    assert bundles(BLOB, 30.0) == [(50, 1.0, True)]
    assert bundles(BLOB, 30.0 * (1 + 1e-12)) == [(50, 1.0, True)]


def test_erratum_full_is_a_matter_of_the_rate_not_of_the_pending_threads() -> None:
    share = 0.85 * (100 / 310)
    assert bundles(PARSE, 100.0) == [(1, share, False)]
    assert bundles(PARSE, 410.0) == [(1, 1.0, True), (1, share, False)]


def test_at_the_most_threads_the_best_measured_point_within_them_is_used() -> None:
    part = allot(Want("blob", BLOB, 100.0, 1, 85))
    assert [b.threads for b in part.bundles] == [50, 30]
    assert part.carried_per_s == 50.0


def test_fewer_threads_allowed_than_the_peak_has_make_no_full_bundle() -> None:
    part = allot(Want("blob", BLOB, 100.0, 1, 25))
    assert [(b.threads, b.full) for b in part.bundles] == [(20, False)]
    assert part.carried_per_s == 10.0
