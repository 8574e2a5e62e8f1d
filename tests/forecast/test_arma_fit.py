"""Fits against statsmodels', the order by AIC, and what happens when nothing converges."""

import numpy as np
import pytest
from statsmodels.tsa.arima.model import ARIMA

from sluicegate.forecast.arma_fit import ORDERS, ArmaFit, choose_order, fit, is_flat
from sluicegate.forecast.arma_likelihood import Floats, innovations


def simulated(phi: list[float], theta: list[float], seed: int, count: int = 100, mean: float = 200.0) -> Floats:
    noise = np.random.default_rng(seed).normal(0.0, 5.0, count + 200)
    x = np.zeros(count + 200)
    for t in range(3, count + 200):
        x[t] = noise[t] + sum(a * x[t - 1 - i] for i, a in enumerate(phi))
        x[t] += sum(b * noise[t - 1 - i] for i, b in enumerate(theta))
    return mean + x[200:]


def theirs(window: Floats, order: tuple[int, int]) -> tuple[float, Floats]:
    found = ARIMA(window - window.mean(), order=(order[0], 0, order[1]), trend="n").fit()
    return found.llf, found.params


@pytest.mark.parametrize(
    ("phi", "theta", "order"),
    [([0.9], [], (1, 0)), ([0.8], [0.4], (1, 1)), ([0.92], [-0.2, -0.4], (1, 2)), ([0.6, 0.2], [], (2, 0))],
)
@pytest.mark.parametrize("seed", [1, 2])
def test_the_fit_is_statsmodels_fit(phi: list[float], theta: list[float], order: tuple[int, int], seed: int) -> None:
    window = simulated(phi, theta, seed)
    found = fit(window, order)
    llf, params = theirs(window, order)
    assert found.log_likelihood == pytest.approx(llf, abs=2e-3)
    assert [*found.phi, *found.theta] == pytest.approx(params[:-1].tolist(), abs=0.02)
    assert found.sd_per_s**2 == pytest.approx(params[-1], rel=0.01)


@pytest.mark.parametrize("order", [(1, 1), (1, 2), (1, 3)])
def test_the_orders_of_the_paper_are_fitted_at_least_as_well_as_by_statsmodels(order: tuple[int, int]) -> None:
    assert order in ORDERS
    window = simulated([0.9], [0.3, 0.2, 0.1], seed=4)
    assert (fit(window, order).log_likelihood or 0.0) > theirs(window, order)[0] - 2e-3


def test_orders_are_all_pairs_up_to_three_without_none() -> None:
    assert len(ORDERS) == 15
    assert (0, 0) not in ORDERS


def test_the_order_is_the_one_of_least_aic() -> None:
    window = simulated([0.92], [-0.2, -0.4], seed=3)
    aics = {order: fit(window, order).aic for order in ORDERS}
    assert choose_order(window) == min(ORDERS, key=lambda order: aics[order] or 0.0)


def test_aic_counts_the_coefficients_and_the_variance() -> None:
    found = fit(simulated([0.8], [0.4], seed=1), (1, 1))
    assert found.log_likelihood is not None
    assert found.aic == pytest.approx(2 * 3 - 2 * found.log_likelihood)


def test_a_longer_series_shows_its_order() -> None:
    assert choose_order(simulated([0.2, 0.2, 0.5], [], seed=6, count=600)) == (3, 0)
    assert choose_order(simulated([], [0.9, 0.5], seed=5, count=600)) == (0, 2)


def test_erratum_eq_11_the_innovation_variance_is_that_of_the_errors() -> None:
    window = simulated([0.8], [0.4], seed=1)
    found = fit(window, (1, 1))
    v, f, _ = innovations(window - window.mean(), found.phi, found.theta)
    assert found.sd_per_s**2 == pytest.approx(float(np.mean(v * v / f)))
    assert found.sd_per_s == pytest.approx(5.0, rel=0.2)
    assert (np.sum(found.phi**2) + np.sum(found.theta**2)) / 100 < 0.1


def test_a_constant_window_is_its_own_forecast() -> None:
    found = fit(np.full(100, 7.0), (1, 2))
    assert (found.mean_per_s, found.sd_per_s, found.note) == (7.0, 0.0, "the window is constant")
    assert found.aic is None
    assert is_flat(np.zeros(100))


def test_a_good_start_and_no_start_climb_to_the_same_top() -> None:
    window = simulated([0.92], [-0.2, -0.4], seed=8, count=110)
    previous = fit(window[:100], (1, 2))
    warm, cold = fit(window[10:], (1, 2), previous), fit(window[10:], (1, 2))
    assert warm.log_likelihood == pytest.approx(cold.log_likelihood, abs=1e-3)


def test_where_nothing_converges_the_previous_coefficients_are_kept_and_noted() -> None:
    # the squares of such rates overflow, so no climb can end well
    window = 1e200 * simulated([0.8], [0.4], seed=1)
    previous = ArmaFit(200.0, np.array([0.8]), np.array([0.4]), 5.0)
    with np.errstate(all="ignore"):
        kept, regressed = fit(window, (1, 1), previous), fit(window, (1, 1))
    assert kept.phi.tolist() == [0.8]
    assert kept.note == "no convergence: coefficients kept"
    assert regressed.note == "no convergence: by two regressions instead"
