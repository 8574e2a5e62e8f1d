from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.domain import Forecast
from sluicegate.errors import BadInput
from sluicegate.forecast.trend import Trend, TrendMemory


def after(rates: list[float], steps: int = 4) -> Forecast:
    trend, memory = Trend(step_s=10.0), TrendMemory()
    for rate in rates:
        memory = trend.learn(memory, rate)
    forecast = trend.forecast(memory, steps)
    assert forecast is not None
    return forecast


def test_a_constant_load_is_expected_to_stay_without_doubt() -> None:
    forecast = after([50.0] * 20)
    assert forecast.mean_per_s.tolist() == [50.0] * 4
    assert forecast.sd_per_s.tolist() == [0.0] * 4


def test_a_ramp_is_expected_to_go_on_a_little_less_at_every_step() -> None:
    mean = after([100.0 + 10 * i for i in range(30)]).mean_per_s
    assert mean[0] > 390
    steps = np.diff(mean)
    assert (steps > 0).all()
    assert (np.diff(steps) < 0).all()


def test_doubt_fades_once_a_ramp_has_ended() -> None:
    ramp = [100.0 + 10 * i for i in range(30)]
    assert after([*ramp, *[390.0] * 30]).sd_per_s[0] < after([*ramp, 390.0, 390.0]).sd_per_s[0] / 5


def test_further_ahead_is_less_certain() -> None:
    rng = np.random.default_rng(1)
    assert (np.diff(after((100 + 10 * rng.standard_normal(200)).tolist()).sd_per_s) > 0).all()


def test_intervals_hold_about_what_they_announce_on_noise() -> None:
    rng = np.random.default_rng(2)
    rates = (1000 + 50 * rng.standard_normal(3000)).tolist()
    trend, memory, held = Trend(step_s=10.0), TrendMemory(), []
    for rate in rates:
        forecast = trend.forecast(memory, 1)
        if forecast is not None:
            held.append(rate <= forecast.upper_per_s(0.95)[0])
        memory = trend.learn(memory, rate)
    assert 0.90 < np.mean(held) < 0.99


@given(st.lists(st.floats(0, 1e9), min_size=3, max_size=60))
def test_a_forecast_is_never_negative_nor_nan(rates: list[float]) -> None:
    forecast = after(rates, steps=12)
    assert (forecast.mean_per_s >= 0).all()
    assert (forecast.sd_per_s >= 0).all()
    assert np.isfinite(forecast.upper_per_s(0.99)).all()


def test_two_values_are_too_few() -> None:
    trend = Trend()
    memory = trend.learn(trend.learn(trend.start(), 1.0), 2.0)
    assert trend.forecast(memory, 3) is None


def test_parameters_out_of_range_are_refused() -> None:
    with pytest.raises(BadInput, match="alpha"):
        Trend(alpha=0.0)
    with pytest.raises(BadInput, match="step_s"):
        Trend(step_s=0.0)
