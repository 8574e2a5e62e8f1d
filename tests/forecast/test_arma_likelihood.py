"""The exact likelihood against statsmodels', and the way to coefficients and back."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.tsa.arima.model import ARIMA

from sluicegate.forecast.arma_likelihood import (
    Floats,
    ahead_of,
    bounded,
    innovations,
    log_likelihood,
    scaled_errors,
    unbounded,
)

free_numbers = st.lists(st.floats(-3.0, 3.0), max_size=3).map(np.array)
CASES = [
    ([0.9], []),
    ([], [0.6]),
    ([0.92], [-0.2, -0.4]),
    ([0.5, 0.3], [0.4]),
    ([1.2, -0.5, 0.1], [0.3, 0.2, -0.4]),
    ([], [0.1, 0.0, 0.8]),
]


def wandering(count: int = 100) -> Floats:
    x = np.random.default_rng(2).normal(0.0, 3.0, count).cumsum() * 0.3
    return np.asarray(x - x.mean(), dtype=np.float64)


@pytest.mark.parametrize(("phi", "theta"), CASES)
def test_the_likelihood_is_statsmodels_likelihood(phi: list[float], theta: list[float]) -> None:
    x = wandering()
    v, f, _ = innovations(x, np.array(phi), np.array(theta))
    variance = float(np.mean(v * v / f))
    theirs = ARIMA(x, order=(len(phi), 0, len(theta)), trend="n").loglike(np.array([*phi, *theta, variance]))
    assert log_likelihood(x, np.array(phi), np.array(theta)) == pytest.approx(theirs, abs=1e-6)


@pytest.mark.parametrize(("phi", "theta"), CASES)
def test_the_means_ahead_are_statsmodels_means(phi: list[float], theta: list[float]) -> None:
    x = wandering()
    state = innovations(x, np.array(phi), np.array(theta))[2]
    fitted = ARIMA(x, order=(len(phi), 0, len(theta)), trend="n").smooth(np.array([*phi, *theta, 1.0]))
    assert ahead_of(state, np.array(phi), 12) == pytest.approx(fitted.get_forecast(12).predicted_mean, abs=1e-6)


@given(free_numbers)
def test_every_free_number_gives_a_stable_polynomial(free: Floats) -> None:
    a = bounded(free)
    roots = np.roots(np.concatenate(([1.0], -a)))
    assert np.all(np.abs(roots) < 1.0)


@given(free_numbers)
def test_the_way_back_finds_the_free_numbers(free: Floats) -> None:
    assert unbounded(bounded(free)) == pytest.approx(free, abs=1e-3)


def test_unstable_coefficients_are_moved_inside() -> None:
    assert np.abs(np.roots([1.0, *-bounded(unbounded(np.array([2.0, 0.5])))])).max() < 1.0


@given(free_numbers, free_numbers)
@settings(max_examples=50, deadline=None)
def test_the_least_sum_of_squares_is_the_greatest_likelihood(ar: Floats, ma: Floats) -> None:
    x = wandering(50)
    squares = float(np.sum(scaled_errors(np.concatenate((ar, ma)), x, len(ar)) ** 2))
    n = len(x)
    expected = -0.5 * n * (np.log(2 * np.pi * squares / n) + 1.0)
    assert log_likelihood(x, bounded(ar), -bounded(ma)) == pytest.approx(expected, abs=1e-6)


def test_a_series_without_any_error_has_a_likelihood() -> None:
    assert np.isfinite(log_likelihood(np.zeros(10), np.array([0.5]), np.empty(0)))
