from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.domain import Operator, ProfilePoint, TaskProfile
from sluicegate.errors import BadInput
from sluicegate.model.task_profile import (
    best_within,
    fewest_threads,
    net_share,
    peak,
    profile_of,
    rate_per_s,
    usage,
    usage_at,
)

BLOB = TaskProfile(
    "blob",
    (
        ProfilePoint(1, 2.0, 0.07, 0.24),
        ProfilePoint(2, 3.0, 0.07, 0.24),
        ProfilePoint(20, 10.0, 0.15, 0.26),
        ProfilePoint(30, 20.0, 0.54, 0.29),
        ProfilePoint(50, 30.0, 0.77, 0.31),
    ),
)
FALLING = TaskProfile("batch", (ProfilePoint(1, 60_000.0, 0.58, 0.12), ProfilePoint(2, 50_000.0, 0.52, 0.03)))


@st.composite
def profiles(draw: st.DrawFn) -> TaskProfile:
    share = st.floats(0.0, 1.0)
    threads = sorted({1} | draw(st.sets(st.integers(2, 80), max_size=5)))
    rates = st.floats(0.1, 1e5)
    return TaskProfile("t", tuple(ProfilePoint(t, draw(rates), draw(share), draw(share)) for t in threads))


@given(profiles())
def test_the_model_passes_through_every_measured_point(profile: TaskProfile) -> None:
    for point in profile.points:
        assert rate_per_s(profile, point.threads) == point.rate_per_s
        assert usage(profile, point.threads) == (point.cpu, point.memory)


@given(profiles(), st.integers(0, 200))
def test_nothing_is_ever_predicted_above_the_highest_measured(profile: TaskProfile, threads: int) -> None:
    assert 0.0 <= rate_per_s(profile, threads) <= peak(profile).rate_per_s * (1 + 1e-12)
    assert all(0.0 <= share <= 1.0 for share in usage(profile, threads))


def test_between_two_points_the_line_holds_as_in_the_papers_nine_table_threads() -> None:
    table = TaskProfile(
        "table", (ProfilePoint(1, 3, 0.01, 0), ProfilePoint(2, 5, 0.02, 0), ProfilePoint(10, 10, 0.1, 0))
    )
    assert rate_per_s(table, 9) == pytest.approx(9.375)


def test_beyond_the_last_point_the_last_value_is_held() -> None:
    assert rate_per_s(BLOB, 51) == rate_per_s(BLOB, 10_000) == 30.0
    assert usage(BLOB, 10_000) == (0.77, 0.31)
    assert rate_per_s(FALLING, 7) == 50_000.0


def test_no_threads_do_nothing() -> None:
    assert rate_per_s(BLOB, 0) == 0.0
    assert usage(BLOB, 0) == (0.0, 0.0)
    assert usage_at(BLOB, 0, 5.0) == (0.0, 0.0)


@given(profiles(), st.floats(0.0, 2e5))
def test_fewest_threads_is_the_first_measured_count_that_is_enough(profile: TaskProfile, wanted: float) -> None:
    threads = fewest_threads(profile, wanted)
    if threads is None:
        assert wanted > peak(profile).rate_per_s
    else:
        assert rate_per_s(profile, threads) >= wanted * (1 - 1e-8)
        assert all(p.rate_per_s < wanted for p in profile.points if p.threads < threads)


def test_threads_between_measured_counts_are_never_proposed() -> None:
    assert fewest_threads(BLOB, 15.0) == 30


def test_the_peak_of_a_task_that_falls_is_one_thread() -> None:
    assert peak(FALLING).threads == 1


def test_among_equal_rates_the_fewest_threads_are_the_peak() -> None:
    flat = TaskProfile("t", (ProfilePoint(1, 5.0, 0.1, 0.1), ProfilePoint(2, 5.0, 0.2, 0.2)))
    assert peak(flat).threads == 1


def test_best_within_looks_at_no_more_threads_than_allowed() -> None:
    assert best_within(BLOB, 29).threads == 20
    assert best_within(BLOB, 1).threads == 1


def test_an_operator_without_profile_has_one_point() -> None:
    derived = profile_of(Operator("parse", 310.0, cpu=0.85, memory=0.36))
    assert derived.points == (ProfilePoint(1, 310.0, 0.85, 0.36),)


def test_a_thread_uses_no_more_than_its_slot() -> None:
    assert profile_of(Operator("wide", 1.0, cpu=2.5, memory=3.0)).points[0].cpu == 1.0


def test_a_profile_takes_the_place_of_the_operators_own_figures() -> None:
    assert profile_of(Operator("blob", 99.0, profile=BLOB)) is BLOB


def test_usage_falls_in_proportion_below_the_peak_rate_and_stops_at_it() -> None:
    assert usage_at(BLOB, 50, 15.0) == pytest.approx((0.385, 0.155))
    assert usage_at(BLOB, 50, 9_999.0) == (0.77, 0.31)


@pytest.mark.parametrize(("used", "idle", "net"), [(0.95, 0.02, 0.949), (0.338, 0.13, 0.2391), (0.02, 0.02, 0.0)])
def test_net_usage_is_what_the_idle_slot_leaves(used: float, idle: float, net: float) -> None:
    assert net_share(used, idle) == pytest.approx(net, abs=1e-4)


def test_a_slot_that_is_busy_when_idle_is_refused() -> None:
    with pytest.raises(BadInput, match="idle slot"):
        net_share(0.5, 1.0)
