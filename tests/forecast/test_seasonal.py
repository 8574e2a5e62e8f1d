"""The season before, at today's level."""

from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluicegate.errors import BadInput
from sluicegate.forecast.seasonal import Seasonal, SeasonalMemory

HOUR = Seasonal(step_s=60.0, season_s=3600.0, level_steps=5, blur=0)
WAVE = 100.0 + 50.0 * np.sin(2 * np.pi * np.arange(60) / 60)


def taught(seasonal: Seasonal, values: Iterable[float]) -> SeasonalMemory:
    memory = seasonal.start()
    for value in values:
        memory = seasonal.learn(memory, float(value))
    return memory


def test_a_season_that_repeats_is_forecast_exactly() -> None:
    forecast = HOUR.forecast(taught(HOUR, np.tile(WAVE, 3)), 60)
    assert forecast is not None
    assert forecast.mean_per_s == pytest.approx(WAVE)
    assert forecast.sd_per_s == pytest.approx(np.zeros(60), abs=1e-9)


def test_a_season_at_another_level_is_forecast_at_that_level() -> None:
    forecast = HOUR.forecast(taught(HOUR, [*WAVE, *WAVE, *(1.3 * WAVE[:20])]), 10)
    assert forecast is not None
    assert forecast.mean_per_s == pytest.approx(1.3 * WAVE[20:30])


def test_a_new_season_counts_with_its_weight() -> None:
    seasonal = Seasonal(step_s=60.0, season_s=600.0, weight=0.25, level_steps=1, blur=0)
    memory = taught(seasonal, [*([100.0] * 10), *([200.0] * 10), 0.0])
    assert memory.profile[1:].tolist() == [125.0] * 9


def test_the_blur_averages_neighbouring_phases() -> None:
    seasonal = Seasonal(step_s=60.0, season_s=3600.0, blur=1, level_steps=5)
    spiky = np.where(np.arange(60) == 30, 400.0, 100.0)
    forecast = seasonal.forecast(taught(seasonal, [*spiky, *spiky[:20]]), 12)
    assert forecast is not None
    assert forecast.mean_per_s[8:].tolist() == pytest.approx([100.0, 200.0, 200.0, 200.0])


def test_the_blur_does_not_mix_this_season_into_the_last() -> None:
    seasonal = Seasonal(step_s=60.0, season_s=3600.0, blur=5, level_steps=5, weight=1.0)
    forecast = seasonal.forecast(taught(seasonal, [*([100.0] * 60), *([200.0] * 30)]), 10)
    assert forecast is not None
    assert forecast.mean_per_s == pytest.approx(np.full(10, 200.0))


def test_the_deviation_grows_with_the_errors_of_the_past() -> None:
    rng = np.random.default_rng(3)
    calm, restless = (HOUR.forecast(taught(HOUR, np.tile(WAVE, 3) + rng.normal(0.0, sd, 180)), 5) for sd in (1.0, 10.0))
    assert calm is not None
    assert restless is not None
    assert np.all(restless.sd_per_s > 3 * calm.sd_per_s)


def test_nothing_is_forecast_before_a_season_has_passed() -> None:
    assert HOUR.forecast(taught(HOUR, WAVE), 1) is None
    assert HOUR.forecast(taught(HOUR, [*WAVE, *WAVE[:14]]), 1) is None
    assert HOUR.forecast(taught(HOUR, [*WAVE, *WAVE[:15]]), 1) is not None


def test_a_silent_season_is_forecast_as_silence() -> None:
    forecast = HOUR.forecast(taught(HOUR, [*([0.0] * 60), *([5.0] * 20)]), 3)
    assert forecast is not None
    assert forecast.mean_per_s.tolist() == [0.0] * 3
    assert forecast.sd_per_s.tolist() == pytest.approx([5.0] * 3)


def test_a_near_silent_profile_does_not_multiply_a_burst() -> None:
    quiet_then_busy = np.where(np.arange(60) < 30, 1e-6, 100.0)
    forecast = HOUR.forecast(taught(HOUR, [*quiet_then_busy, *([50.0] * 29)]), 3)
    assert forecast is not None
    assert forecast.mean_per_s.max() <= 1000.0


@given(st.lists(st.floats(0.0, 1e6), min_size=45, max_size=60), st.integers(0, 2), st.integers(1, 25))
@settings(max_examples=50, deadline=None)
def test_any_rates_give_finite_forecasts_that_are_not_negative(values: list[float], blur: int, steps: int) -> None:
    seasonal = Seasonal(step_s=60.0, season_s=1200.0, blur=blur)
    forecast = seasonal.forecast(taught(seasonal, values), steps)
    assert forecast is not None
    assert np.all(np.isfinite(forecast.mean_per_s))
    assert np.all(forecast.mean_per_s >= 0)
    assert np.all(np.isfinite(forecast.sd_per_s))


def test_learning_leaves_the_memory_it_was_handed() -> None:
    memory = taught(HOUR, np.tile(WAVE, 2))
    before = memory.profile.copy()
    HOUR.learn(memory, 1e6)
    assert memory.profile.tolist() == before.tolist()


def test_options_that_cannot_work_are_refused() -> None:
    for options, problem in (
        ({"season_s": 60.0}, "at least 2 steps"),
        ({"weight": 0.0}, "weight"),
        ({"weight": 1.5}, "weight"),
        ({"season_s": 600.0, "blur": 5}, "blur"),
        ({"level_steps": 0}, "level_steps"),
        ({"history": 3}, "history"),
    ):
        with pytest.raises(BadInput, match=problem):
            Seasonal(
                season_s=float(options.get("season_s", 86_400.0)),
                weight=float(options.get("weight", 0.5)),
                level_steps=int(options.get("level_steps", 5)),
                blur=int(options.get("blur", 5)),
                history=int(options.get("history", 120)),
            )
    with pytest.raises(BadInput, match="forecast at least 1"):
        HOUR.forecast(HOUR.start(), 0)
    with pytest.raises(BadInput, match="finite"):
        HOUR.learn(HOUR.start(), float("nan"))
