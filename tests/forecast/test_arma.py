"""ARMA forecasts: variances by the psi weights, and the paper's errata."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.tsa.arima.model import ARIMA
from statsmodels.tsa.arima_process import arma2ma

from sluicegate.errors import BadInput
from sluicegate.forecast.arma import Arma, ArmaMemory, psi_weights
from sluicegate.forecast.arma_likelihood import Floats

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
