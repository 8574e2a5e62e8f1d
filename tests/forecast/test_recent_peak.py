"""The largest recent rate with a margin."""

from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.errors import BadInput
from sluicegate.forecast.recent_peak import Floats, RecentPeakForecast


def taught(peak: RecentPeakForecast, values: Iterable[float]) -> Floats:
    memory = peak.start()
    for value in values:
        memory = peak.learn(memory, float(value))
    return memory


@given(st.lists(st.floats(0.0, 1e6), min_size=15, max_size=40), st.integers(1, 5), st.floats(0.0, 0.5))
def test_the_mean_is_the_largest_of_the_last_steps_with_the_margin(values: list[float], w: int, x: float) -> None:
    peak = RecentPeakForecast(steps=w, margin=x)
    forecast = peak.forecast(taught(peak, values), 3)
    assert forecast is not None
    assert forecast.mean_per_s.tolist() == pytest.approx([max(values[-w:]) * (1 + x)] * 3)
    assert np.all(np.isfinite(forecast.sd_per_s))
    assert np.all(forecast.sd_per_s >= 0)


def test_a_peak_is_forgotten_after_the_window() -> None:
    peak = RecentPeakForecast(steps=5, margin=0.0)
    quiet, loud = [10.0] * 15, [100.0]
    for later, expected in ((4, 100.0), (5, 10.0)):
        forecast = peak.forecast(taught(peak, quiet + loud + [10.0] * later), 1)
        assert forecast is not None
        assert forecast.mean_per_s[0] == expected


def test_a_steady_rate_has_no_deviation() -> None:
    peak = RecentPeakForecast()
    forecast = peak.forecast(taught(peak, [50.0] * 40), 11)
    assert forecast is not None
    assert forecast.sd_per_s == pytest.approx(np.zeros(11), abs=1e-9)


def test_the_deviation_is_that_of_the_recent_ratios() -> None:
    values = np.random.default_rng(1).uniform(50.0, 100.0, 60)
    peak = RecentPeakForecast(steps=3, margin=0.1)
    forecast = peak.forecast(taught(peak, values), 2)
    assert forecast is not None
    announced = [1.1 * values[t - 2 : t + 1].max() for t in range(2, 58)]
    ratios = [values[t + 2] / announced[t - 2] for t in range(2, 58)]
    assert forecast.sd_per_s[1] == pytest.approx(np.std(ratios, ddof=1) * forecast.mean_per_s[1])


def test_a_restless_past_widens_the_forecast() -> None:
    rng = np.random.default_rng(1)
    peak = RecentPeakForecast()
    calm, restless = (peak.forecast(taught(peak, 100 + s * rng.uniform(-1, 1, 60)), 1) for s in (5, 50))
    assert calm is not None
    assert restless is not None
    assert restless.sd_per_s[0] > calm.sd_per_s[0]


def test_steps_beyond_the_past_take_the_last_known_deviation() -> None:
    peak = RecentPeakForecast(steps=2)
    forecast = peak.forecast(taught(peak, np.arange(1.0, 14.0)), 30)
    assert forecast is not None
    assert forecast.sd_per_s[-1] == forecast.sd_per_s[-2] > 0


def test_a_burst_after_near_silence_does_not_blow_up_the_deviation() -> None:
    peak = RecentPeakForecast(steps=1, margin=0.0)
    forecast = peak.forecast(taught(peak, [*([1e-9] * 30), 100.0]), 1)
    assert forecast is not None
    assert forecast.sd_per_s[0] < 2 * forecast.mean_per_s[0]


def test_a_load_of_zero_is_forecast_as_zero() -> None:
    peak = RecentPeakForecast()
    forecast = peak.forecast(taught(peak, [0.0] * 30), 2)
    assert forecast is not None
    assert forecast.mean_per_s.tolist() == forecast.sd_per_s.tolist() == [0.0, 0.0]


def test_nothing_is_forecast_from_too_short_a_past() -> None:
    peak = RecentPeakForecast()
    assert peak.forecast(taught(peak, [1.0] * 14), 1) is None
    assert peak.forecast(taught(peak, [1.0] * 15), 1) is not None


def test_memory_does_not_grow() -> None:
    peak = RecentPeakForecast(steps=5, history=20)
    assert len(taught(peak, range(200))) == 25


@pytest.mark.parametrize("value", [-1.0, float("inf"), float("nan")])
def test_rates_that_are_none_are_refused(value: float) -> None:
    with pytest.raises(BadInput):
        RecentPeakForecast().learn(np.empty(0), value)


def test_options_that_cannot_work_are_refused() -> None:
    with pytest.raises(BadInput, match="look back"):
        RecentPeakForecast(steps=0)
    with pytest.raises(BadInput, match="margin"):
        RecentPeakForecast(margin=-0.1)
    with pytest.raises(BadInput, match="history"):
        RecentPeakForecast(history=2)
    with pytest.raises(BadInput, match="forecast at least 1"):
        RecentPeakForecast().forecast(np.empty(0), 0)
