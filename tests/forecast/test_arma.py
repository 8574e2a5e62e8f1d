"""ARMA forecasts: variances by the psi weights, and the paper's errata."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.tsa.arima.model import ARIMA
from statsmodels.tsa.arima_process import arma2ma

from sluicegate.errors import BadInput
from sluicegate.forecast.arma import ORDERS, Arma, ArmaFit, ArmaMemory, choose_order, fit, is_flat, psi_weights
from sluicegate.forecast.arma_likelihood import Floats, innovations

coefficients = st.lists(st.floats(-0.9, 0.9), max_size=3).map(np.array)


def rates(count: int, seed: int = 5, mean: float = 200.0) -> Floats:
    noise = np.random.default_rng(seed).normal(0.0, 5.0, count + 1)
    x = np.zeros(count + 1)
    for t in range(1, count + 1):
        x[t] = 0.8 * x[t - 1] + noise[t] + 0.4 * noise[t - 1]
    return mean + x[1:]


def taught(arma: Arma, values: Floats) -> ArmaMemory:
    memory = arma.start()
    for value in values:
        memory = arma.learn(memory, float(value))
    return memory


@given(coefficients, coefficients)
@settings(deadline=None)
def test_psi_weights_are_statsmodels_weights(phi: Floats, theta: Floats) -> None:
    theirs = arma2ma(np.concatenate(([1.0], -phi)), np.concatenate(([1.0], theta)), lags=12)
    assert psi_weights(phi, theta, 12) == pytest.approx(theirs, abs=1e-9)


def test_erratum_eq_12_theta_is_added_as_in_eq_9() -> None:
    assert psi_weights(np.array([0.5]), np.array([0.3]), 3).tolist() == pytest.approx([1.0, 0.8, 0.4])


def test_erratum_eq_13_h_steps_ahead_sum_the_first_h_weights() -> None:
    arma = Arma(order=(1, 1))
    memory = taught(arma, rates(100))
    forecast = arma.forecast(memory, 3)
    assert forecast is not None
    assert memory.fit is not None
    psi = psi_weights(memory.fit.phi, memory.fit.theta, 3)
    relative = (forecast.sd_per_s / memory.fit.sd_per_s) ** 2
    assert relative.tolist() == pytest.approx([1.0, 1.0 + psi[1] ** 2, 1.0 + psi[1] ** 2 + psi[2] ** 2])


@pytest.mark.parametrize("order", [(1, 1), (1, 2), (2, 0), (0, 2)])
def test_means_and_variances_ahead_are_statsmodels(order: tuple[int, int]) -> None:
    values = rates(100)
    arma = Arma(order=order)
    memory = taught(arma, values)
    forecast = arma.forecast(memory, 11)
    assert forecast is not None
    assert memory.fit is not None
    given_parameters = np.array([*memory.fit.phi, *memory.fit.theta, memory.fit.sd_per_s**2])
    demeaned = values - values.mean()
    theirs = ARIMA(demeaned, order=(order[0], 0, order[1]), trend="n").smooth(given_parameters).get_forecast(11)
    assert forecast.mean_per_s - values.mean() == pytest.approx(theirs.predicted_mean, abs=1e-6)
    assert forecast.sd_per_s**2 == pytest.approx(theirs.var_pred_mean, rel=1e-6)


def test_erratum_eq_9_without_a_constant_forecasts_of_positive_rates_do_not_decay_to_zero() -> None:
    values = rates(100)
    arma = Arma()
    forecast = arma.forecast(taught(arma, values), 500)
    assert forecast is not None
    assert forecast.mean_per_s[-1] == pytest.approx(values.mean(), rel=0.02)


def test_nothing_is_forecast_before_the_first_window_is_full() -> None:
    arma = Arma(order=(1, 0))
    assert arma.forecast(arma.start(), 5) is None
    assert arma.forecast(taught(arma, rates(99)), 5) is None
    assert arma.forecast(taught(arma, rates(100)), 5) is not None


def test_the_order_is_chosen_once_on_the_first_window() -> None:
    arma = Arma()
    first = taught(arma, rates(100))
    assert first.order is not None
    later = first
    for value in rates(60, seed=9):
        later = arma.learn(later, float(value))
    assert later.order == first.order


def test_parameters_stay_between_refits_and_the_newest_value_still_counts() -> None:
    arma = Arma(order=(1, 0), refit_every=10)
    memory = taught(arma, rates(100))
    next_one = arma.learn(memory, 300.0)
    assert next_one.fit is memory.fit
    before, after = arma.forecast(memory, 1), arma.forecast(next_one, 1)
    assert before is not None
    assert after is not None
    assert after.mean_per_s[0] > before.mean_per_s[0] + 20
    tenth = memory
    for value in rates(10, seed=6):
        tenth = arma.learn(tenth, float(value))
    assert tenth.fit is not memory.fit


def test_only_the_window_is_kept() -> None:
    memory = taught(Arma(window=30, order=(1, 0)), rates(75))
    assert memory.values.tolist() == rates(75)[-30:].tolist()
    assert memory.learned == 75


def test_learning_leaves_the_memory_it_was_handed() -> None:
    arma = Arma(order=(1, 0))
    memory = taught(arma, rates(100))
    before = memory.values.copy()
    arma.learn(memory, 1.0)
    assert memory.values.tolist() == before.tolist()


def test_a_constant_rate_is_forecast_for_sure_and_the_order_waits() -> None:
    arma = Arma()
    memory = taught(arma, np.full(100, 42.0))
    forecast = arma.forecast(memory, 3)
    assert forecast is not None
    assert forecast.mean_per_s.tolist() == [42.0] * 3
    assert forecast.sd_per_s.tolist() == [0.0] * 3
    assert memory.order is None
    moving = memory
    for value in rates(20):
        moving = arma.learn(moving, float(value))
    assert moving.order is not None


def test_forecasts_are_never_negative() -> None:
    arma = Arma(order=(1, 0))
    falling = np.maximum(100.0 - 1.5 * np.arange(100.0), 0.0)
    forecast = arma.forecast(taught(arma, falling), 50)
    assert forecast is not None
    assert forecast.mean_per_s.min() >= 0.0


@given(st.lists(st.floats(0.0, 1e6), min_size=20, max_size=24))
@settings(max_examples=25, deadline=None)
def test_any_rates_give_finite_forecasts(values: list[float]) -> None:
    arma = Arma(window=20, refit_every=1, order=(1, 2))
    forecast = arma.forecast(taught(arma, np.array(values)), 11)
    assert forecast is not None
    assert np.all(np.isfinite(forecast.mean_per_s))
    assert np.all(np.isfinite(forecast.sd_per_s))


@pytest.mark.parametrize(
    "build",
    [
        lambda: Arma(window=5),
        lambda: Arma(refit_every=0),
        lambda: Arma(step_s=0.0),
        lambda: Arma(order=(0, 0)),
        lambda: Arma(order=(4, 1)),
        lambda: Arma(order=(-1, 1)),
    ],
)
def test_options_that_cannot_work_are_refused(build: Callable[[], Arma]) -> None:
    with pytest.raises(BadInput):
        build()


def test_rates_that_are_none_are_refused() -> None:
    arma = Arma()
    with pytest.raises(BadInput, match="finite"):
        arma.learn(arma.start(), float("nan"))
    with pytest.raises(BadInput, match="at least 1"):
        arma.forecast(arma.start(), 0)


def test_a_step_after_a_constant_load_is_not_forecast_away() -> None:
    memory = taught(Arma(), np.array([100.0] * 100 + [200.0]))
    assert Arma().forecast(memory, 12) is None


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
