from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.errors import BadInput
from sluicegate.policy.papers.redirection import (
    QueueBounds,
    load_deviation,
    redirect,
    shares_by_free_places,
    shares_by_speed,
)

queues = st.lists(st.floats(0, 5000), min_size=1, max_size=12)


@given(queues)
def test_shares_are_probabilities(some: list[float]) -> None:
    shares = shares_by_free_places(some, 1024.0)
    assert sum(shares) == pytest.approx(1.0)
    assert all(0 <= share <= 1 for share in shares)


@given(queues)
def test_a_longer_queue_never_gets_a_larger_share(some: list[float]) -> None:
    shares = shares_by_free_places(some, 1024.0)
    by_queue = sorted(zip(some, shares, strict=True))
    assert all(first[1] >= second[1] - 1e-12 for first, second in pairwise(by_queue))


@given(st.integers(1, 9), st.floats(1024, 1e6))
def test_erratum_eq_10_with_every_queue_full_routes_evenly(instances: int, queue: float) -> None:
    assert shares_by_free_places([queue] * instances, 1024.0) == (1 / instances,) * instances


def test_the_deviation_is_the_mean_distance_from_the_mean() -> None:
    assert load_deviation([100.0, 300.0]) == 100.0
    assert load_deviation([7.0]) == load_deviation([]) == 0.0


@pytest.mark.parametrize(("mean", "resize"), [(0.5, True), (1.0, False), (300.0, False), (512.0, False), (513.0, True)])
def test_a_mean_queue_outside_its_bounds_asks_for_algorithm_1(mean: float, resize: bool) -> None:
    assert redirect([mean, mean]).resize is resize


def test_an_even_load_keeps_its_routes_and_an_uneven_one_does_not() -> None:
    assert redirect([200.0, 210.0]).shares is None
    found = redirect([24.0, 424.0])
    assert found.shares == pytest.approx((0.625, 0.375))
    assert found.reason == "mean queue 224 rows within 1 to 512, deviation 200 above 102.4"


def test_queues_nobody_measured_ask_for_nothing() -> None:
    assert redirect([]) == redirect(())
    assert not redirect([]).resize


def test_one_instance_has_nobody_to_share_with() -> None:
    assert redirect([400.0], QueueBounds(most_deviation=0.0)).shares is None


def test_bounds_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(BadInput, match="least < most"):
        QueueBounds(least_mean=600.0)
    with pytest.raises(BadInput, match="least < most"):
        QueueBounds(most_mean=2000.0)
    with pytest.raises(BadInput, match="places"):
        QueueBounds(places=0.0)


@given(st.lists(st.floats(0.1, 1e6), min_size=2, max_size=8))
def test_rows_by_speed_let_all_instances_end_together(speeds: list[float]) -> None:
    shares = shares_by_speed(speeds)
    if shares is None:
        assert max(speeds) <= 1.25 * min(speeds)
    else:
        assert sum(shares) == pytest.approx(1.0)
        ends = [share / speed for share, speed in zip(shares, speeds, strict=True)]
        assert max(ends) == pytest.approx(min(ends))


@pytest.mark.parametrize("speeds", [(), (5.0,), (5.0, 0.0), (5.0, float("nan")), (5.0, float("inf"))])
def test_speeds_that_say_nothing_redirect_nothing(speeds: tuple[float, ...]) -> None:
    assert shares_by_speed(speeds) is None
