"""Claims about sluicegate's own forecaster, and about the pool of scores behind it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from sluicegate.errors import BadInput
from sluicegate.forecast.calibrated import (
    BLOCK,
    HORIZONS,
    Calibrated,
    CalibratedMemory,
    achieved,
    announced,
    empty_pool,
    published,
    with_scores,
)


def test_before_any_score_the_law_is_symmetric_and_heavy() -> None:
    scores = published(empty_pool(1), 0)
    assert np.allclose(scores, -scores[::-1])
    assert scores[-1] > 3


def test_coverage_returns_to_the_announced_level_when_the_scores_change_law() -> None:
    rng = np.random.default_rng(0)
    pool = empty_pool(1)
    for scale in (1.0, 2.0):
        for score in scale * rng.standard_normal(3000):
            pool = with_scores(pool, np.array([score]))
    assert abs(achieved(pool)[0] - 0.99) < 0.004
    assert announced(pool)[0] > 3.5


def test_the_pool_that_is_given_stays_as_it_is() -> None:
    pool = empty_pool(2)
    fresh = pool.fresh.copy()
    with_scores(pool, np.array([1.0, 2.0]))
    assert np.array_equal(pool.fresh, fresh)
    assert pool.number == 0


def test_only_positive_scores_are_corrected() -> None:
    pool = empty_pool(1)
    missed = with_scores(pool, np.array([9.0]))
    before, after = published(pool, 0), published(missed, 0)
    assert np.array_equal(before[before < 0], after[after < 0])
    assert after[-1] > before[-1]


def test_an_error_far_beyond_all_others_is_a_miss_and_raises_no_quantile() -> None:
    pool = empty_pool(1)
    for score in [0.5] * (BLOCK - 1) + [1000.0]:
        pool = with_scores(pool, np.array([score]))
    calm = empty_pool(1)
    for score in [0.5] * (BLOCK - 1) + [0.0]:
        calm = with_scores(calm, np.array([score]))
    assert published(pool, 0)[-1] <= published(calm, 0)[-1] * 1.001
    assert achieved(pool)[0] < achieved(calm)[0] == 1.0


Floats = NDArray[np.float64]
LEVELS = (0.9, 0.99)


def seasonal(steps: int, seed: int) -> Floats:
    """A day's wave of 1,440 steps with 8% noise."""
    wave = 100 + 60 * np.sin(2 * np.pi * np.arange(steps) / 1440)
    return np.asarray(wave * np.exp(0.08 * np.random.default_rng(seed).standard_normal(steps)))


def bursty(steps: int, seed: int) -> Floats:
    """A steady load with a burst of 40% about every 200 steps that dies down over ten."""
    rng = np.random.default_rng(seed)
    start = rng.random(steps) < 1 / 200
    burst = np.convolve(start, 0.4 * np.exp(-np.arange(30) / 10))[:steps]
    return np.asarray(100 * (1 + burst) * np.exp(0.03 * rng.standard_normal(steps)))


def regimes(steps: int, seed: int) -> Floats:
    """Level and noise change every 1,000 steps."""
    rng = np.random.default_rng(seed)
    block = np.arange(steps) // 1000
    level, noise = np.array([50.0, 200.0, 90.0])[block % 3], np.array([0.02, 0.1, 0.05])[block % 3]
    return np.asarray(level * np.exp(noise * rng.standard_normal(steps)))


def learned(rates: Floats) -> CalibratedMemory:
    forecaster = Calibrated()
    memory = forecaster.start()
    for rate in rates.tolist():
        memory = forecaster.learn(memory, rate)
    return memory


def covered(rates: Floats, ahead: int, after: int) -> Floats:
    """The share of steps past ``after`` that stayed below the announced quantiles."""
    forecaster = Calibrated()
    memory, held = forecaster.start(), []
    for t, rate in enumerate(rates[:-ahead].tolist()):
        memory = forecaster.learn(memory, rate)
        forecast = forecaster.forecast(memory, ahead) if t >= after else None
        if forecast is not None:
            held.append([rates[t + ahead] <= forecast.upper_per_s(level)[-1] for level in LEVELS])
    return np.asarray(np.mean(held, axis=0))


@pytest.mark.parametrize("load", [seasonal, bursty, regimes])
@pytest.mark.parametrize("ahead", [3, 12])
def test_announced_quantiles_are_met(load: object, ahead: int) -> None:
    assert callable(load)
    shares = covered(load(4500, seed=1), ahead, after=1500)
    assert abs(shares[0] - LEVELS[0]) < 0.025
    assert abs(shares[1] - LEVELS[1]) < 0.006


def test_the_steps_before_the_last_are_covered_too() -> None:
    rates, forecaster = seasonal(3500, seed=2), Calibrated()
    memory, held = forecaster.start(), []
    for t, rate in enumerate(rates[:-12].tolist()):
        memory = forecaster.learn(memory, rate)
        forecast = forecaster.forecast(memory, 12)
        if forecast is not None and t > 1500:
            held.append(rates[t + 1 : t + 13] <= forecast.upper_per_s(0.99))
    assert np.all(np.abs(np.mean(held, axis=0) - 0.99) < 0.008)


def test_it_adapts_after_a_level_shift() -> None:
    rng = np.random.default_rng(3)
    rates = np.concatenate((np.full(1500, 100.0), np.full(60, 400.0))) * np.exp(0.03 * rng.standard_normal(1560))
    forecast = Calibrated().forecast(learned(rates), 3)
    assert forecast is not None
    assert np.all(np.abs(forecast.mean_per_s - 400) < 40)


def test_a_noisy_hour_widens_the_margin() -> None:
    rng = np.random.default_rng(4)
    calm = 100 * np.exp(0.02 * rng.standard_normal(3000))
    wild = np.where(np.arange(3000) % 600 < 120, 100 * np.exp(0.2 * rng.standard_normal(3000)), calm)
    quiet, loud = (Calibrated().forecast(learned(wild[:end]), 3) for end in (2900, 2500))
    assert quiet is not None
    assert loud is not None
    assert loud.sd_per_s[-1] > 2 * quiet.sd_per_s[-1]


def test_a_ramp_is_followed() -> None:
    ramp = 100 + 10 * np.abs(np.arange(2000) % 120 - 60.0)
    forecast = Calibrated().forecast(learned(ramp[:1950]), 3)
    assert forecast is not None
    assert abs(forecast.mean_per_s[-1] - ramp[1952]) < abs(ramp[1949] - ramp[1952])


@pytest.mark.parametrize("noise", [0.01, 0.03, 0.1])
def test_a_jump_in_a_young_load_is_not_taken_for_growth_that_goes_on(noise: float) -> None:
    rng = np.random.default_rng(1)
    shape = np.array([300.0] * 6 + [500.0, 700.0] + [900.0] * 8)
    means = []
    for _ in range(20):
        forecast = Calibrated().forecast(learned(shape * (1 + noise * rng.standard_normal(len(shape)))), 2)
        assert forecast is not None
        means.append(forecast.mean_per_s.max())
    assert np.mean(means) < 1.12 * 900.0


def test_a_minute_that_jumps_every_hour_is_expected_to() -> None:
    rng = np.random.default_rng(5)
    hits = (np.arange(6000) % 60 == 30) & (rng.random(6000) < 0.5)
    rates = 100 * np.exp(0.02 * rng.standard_normal(6000)) * np.where(hits, 1.5, 1.0)
    forecaster = Calibrated()
    memory = learned(rates[:5968])  # the last rate known is that of minute 27
    before = forecaster.forecast(memory, 3)
    later = forecaster.forecast(learned(rates[:5978]), 3)
    assert before is not None
    assert later is not None
    assert before.sd_per_s[-1] > 1.5 * later.sd_per_s[-1]


@pytest.mark.parametrize("step_s", [10.0, 60.0, 300.0])
def test_a_job_at_the_same_minute_of_every_hour_is_forecast(step_s: float) -> None:
    rng = np.random.default_rng(6)
    hour, lasts = round(3600 / step_s), max(1, round(60 / step_s))
    steps = np.arange(40 * hour)
    rates = np.where(steps % hour < lasts, 300.0, 100.0) + rng.normal(0, 3, len(steps))
    forecaster = Calibrated(step_s)
    memory = forecaster.start()
    for rate in rates[: 39 * hour - 2]:
        memory = forecaster.learn(memory, float(rate))
    forecast = forecaster.forecast(memory, 3)  # the job is the last of the three
    assert forecast is not None
    assert forecast.mean_per_s[:2] == pytest.approx([100.0, 100.0], rel=0.15)
    assert forecast.mean_per_s[2] == pytest.approx(300.0, rel=0.15)


def test_loads_below_the_forecast_widen_the_margin_less_than_loads_above() -> None:
    rng = np.random.default_rng(7)
    calm = 100 + rng.normal(0, 1, 4000)
    at_random = rng.random(4000) < 0.05
    sd = {}
    for size in (-40.0, 40.0):
        forecast = Calibrated().forecast(learned(calm + size * at_random), 3)
        assert forecast is not None
        sd[size] = forecast.sd_per_s[-1]
    assert sd[-40.0] < 0.9 * sd[40.0]  # alike but for the sign


def test_it_is_deterministic_and_leaves_the_memory_it_is_given() -> None:
    forecaster, memory = Calibrated(), learned(bursty(300, seed=6))
    state, kept, fresh = memory.state.copy(), memory.pool.kept.copy(), memory.pool.fresh.copy()
    one, other = forecaster.learn(memory, 130.0), forecaster.learn(memory, 130.0)
    assert np.array_equal(one.state, other.state)
    assert np.array_equal(memory.state, state)
    assert np.array_equal(memory.pool.kept, kept)
    assert np.array_equal(memory.pool.fresh, fresh)
    assert memory.steps == 300
    assert one.steps == 301


def test_nothing_is_forecast_before_three_rates() -> None:
    forecaster = Calibrated()
    memory = forecaster.start()
    assert forecaster.forecast(memory, 3) is None
    assert forecaster.coverage(memory) is None
    assert forecaster.forecast(learned(np.array([1.0, 2.0, 3.0])), 3) is not None


def test_coverage_is_tracked_for_each_horizon() -> None:
    coverage = Calibrated().coverage(learned(seasonal(3000, seed=7)))
    assert coverage is not None
    assert tuple(coverage) == HORIZONS
    assert all(abs(share - 0.99) < 0.008 for share in coverage.values())


def test_doubt_grows_beyond_the_last_horizon() -> None:
    forecast = Calibrated().forecast(learned(seasonal(500, seed=8)), 48)
    assert forecast is not None
    assert forecast.sd_per_s[47] == pytest.approx(2 * forecast.sd_per_s[11])


@pytest.mark.parametrize("rate", [-1.0, float("nan"), float("inf")])
def test_a_rate_that_is_none_is_refused(rate: float) -> None:
    with pytest.raises(BadInput):
        Calibrated().learn(Calibrated().start(), rate)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.one_of(st.just(0.0), st.floats(1e-6, 1e9)), min_size=3, max_size=80),
    st.sampled_from([1.0, 60.0, 3600.0, 86400.0]),
    st.integers(1, 30),
)
def test_any_rates_give_finite_forecasts_that_are_not_negative(rates: list[float], step_s: float, steps: int) -> None:
    forecaster = Calibrated(step_s)
    memory = forecaster.start()
    for rate in rates:
        memory = forecaster.learn(memory, rate)
    forecast = forecaster.forecast(memory, steps)
    assert forecast is not None
    assert len(forecast.mean_per_s) == steps
    assert np.all(np.isfinite(forecast.mean_per_s))
    assert np.all(forecast.mean_per_s >= 0)
    assert np.all(forecast.sd_per_s > 0)
    assert np.all(np.diff(forecast.scores) >= 0)
    assert forecast.peak_per_s(0.999) >= forecast.peak_per_s(0.9) >= 0


@pytest.mark.parametrize("idle", [5, 40, 200])
def test_a_load_that_begins_at_zero_is_soon_as_sure_as_any(idle: int) -> None:
    """When the first rows come it is off by a million deviations; that must not speak for days."""
    forecaster, memory = Calibrated(60.0), Calibrated(60.0).start()
    for rate in [0.0] * idle + np.minimum(np.arange(1.0, 241) * 10, 1000.0).tolist():
        memory = forecaster.learn(memory, rate)
    forecast = forecaster.forecast(memory, 12)
    assert forecast is not None
    assert forecast.scores.max() <= 50.0 * np.exp(0.7)
    assert forecast.upper_per_s(0.95).max() < 1500.0
