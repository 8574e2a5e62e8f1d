from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.domain.births import MOST, Births, quantile_s

POINTS = st.lists(st.tuples(st.floats(0, 2e9), st.floats(0, 1e6)), max_size=200)


@given(POINTS)
def test_joining_neighbours_keeps_the_weight_and_the_mean(points: list[tuple[float, float]]) -> None:
    births, weight = Births.of(points), sum(w for _, w in points)
    assert math.isclose(births.weight, weight, rel_tol=1e-9, abs_tol=1e-9)
    if births.mean_s is not None:
        assert math.isclose(births.mean_s, sum(t * w for t, w in points) / weight, rel_tol=1e-9, abs_tol=1e-6)


@given(POINTS)
def test_a_histogram_is_small_in_order_and_without_empty_points(points: list[tuple[float, float]]) -> None:
    births = Births.of(points)
    assert len(births.points) <= MOST + 1
    assert list(births.points) == sorted(births.points)
    assert all(w > 0 for _, w in births.points)


@given(st.lists(POINTS, max_size=6))
def test_merging_adds_weights(parts: list[list[tuple[float, float]]]) -> None:
    merged = Births.merged(Births.of(part) for part in parts)
    assert math.isclose(merged.weight, sum(w for part in parts for _, w in part), rel_tol=1e-9, abs_tol=1e-9)


@given(POINTS, st.floats(0, 2e9))
def test_an_age_is_never_negative_whatever_the_clocks_say(points: list[tuple[float, float]], at_s: float) -> None:
    assert all(age >= 0 for age, _ in Births.of(points).ages_s(at_s))


@given(st.lists(st.tuples(st.floats(0, 100), st.integers(1, 50)), min_size=1, max_size=30), st.floats(0, 1))
def test_a_quantile_is_an_age_that_its_share_of_the_rows_does_not_exceed(
    ages: list[tuple[float, int]], share: float
) -> None:
    found = quantile_s(ages, share)
    assert found is not None
    assert sum(w for age, w in ages if age <= found) >= share * sum(w for _, w in ages) - 1e-6
    below = sum(w for age, w in ages if age < found)
    assert below <= share * sum(w for _, w in ages) + 1e-6


def test_nothing_has_neither_mean_nor_quantile() -> None:
    assert (Births().weight, Births().mean_s, quantile_s([], 0.5)) == (0, None, None)


@pytest.mark.parametrize("heavy", [0, 24, 99])
def test_one_heavy_point_does_not_swallow_the_others(heavy: int) -> None:
    births = Births.of([(float(i), 1e6 if i == heavy else 1.0) for i in range(100)])
    assert any(w >= 1e6 and abs(t - heavy) < 0.01 for t, w in births.points)
