"""The contract every registered forecaster keeps."""

from __future__ import annotations

import copy
import pickle
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluicegate.errors import BadInput
from sluicegate.forecast.catalogue import FORECASTERS, forecaster
from sluicegate.forecast.forecaster import Forecaster

NAMES = sorted(FORECASTERS)
# A season short enough for a test to see several.
OPTIONS: dict[str, dict[str, float]] = {"seasonal": {"season_s": 1800.0}}
RATES = st.lists(st.one_of(st.just(0.0), st.floats(0, 1e6)), min_size=1, max_size=160)


def build(name: str) -> Forecaster[Any]:
    return forecaster(name, step_s=60.0, **OPTIONS.get(name, {}))


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25)
@given(rates=RATES, steps=st.integers(1, 15))
def test_a_forecast_is_finite_never_negative_and_ordered(name: str, rates: list[float], steps: int) -> None:
    forecasting = build(name)
    memory = forecasting.start()
    for rate in rates:
        memory = forecasting.learn(memory, rate)
    forecast = forecasting.forecast(memory, steps)
    if forecast is None:
        return
    assert len(forecast.mean_per_s) == steps
    assert np.isfinite(forecast.mean_per_s).all()
    assert np.isfinite(forecast.sd_per_s).all()
    assert (forecast.sd_per_s >= 0).all()
    levels = [forecast.upper_per_s(level) for level in (0.5, 0.9, 0.95, 0.99)]
    assert all((upper >= 0).all() for upper in levels)
    assert all((low <= high + 1e-9).all() for low, high in pairwise(levels))


@pytest.mark.parametrize("name", NAMES)
def test_learning_never_changes_what_was_known(name: str) -> None:
    forecasting = build(name)
    rng = np.random.default_rng(1)
    memory = forecasting.start()
    for rate in rng.uniform(50, 150, 130):
        memory = forecasting.learn(memory, float(rate))
    kept = pickle.dumps(memory)
    before = forecasting.forecast(memory, 12)
    forecasting.learn(memory, 999.0)
    after = forecasting.forecast(copy.deepcopy(memory), 12)
    assert pickle.dumps(memory) == kept
    assert before is not None
    assert after is not None
    assert before.mean_per_s.tolist() == after.mean_per_s.tolist()


@pytest.mark.parametrize("name", NAMES)
def test_the_same_rates_give_the_same_forecast(name: str) -> None:
    found = []
    for _ in range(2):
        forecasting = build(name)
        memory = forecasting.start()
        for rate in np.random.default_rng(2).uniform(50, 150, 130):
            memory = forecasting.learn(memory, float(rate))
        forecast = forecasting.forecast(memory, 5)
        assert forecast is not None
        found.append((forecast.mean_per_s.tolist(), forecast.sd_per_s.tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize("name", NAMES)
def test_a_steady_load_is_forecast_as_it_is(name: str) -> None:
    forecasting = build(name)
    memory = forecasting.start()
    for rate in np.random.default_rng(3).normal(1000, 10, 300):
        memory = forecasting.learn(memory, float(rate))
    forecast = forecasting.forecast(memory, 10)
    assert forecast is not None
    assert forecast.upper_per_s(0.5) == pytest.approx(np.full(10, 1000.0), rel=0.25)
    assert (forecast.upper_per_s(0.99) < 1500).all()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("bad", [-1.0, float("nan"), float("inf")])
def test_rates_that_cannot_be_are_refused(name: str, bad: float) -> None:
    forecasting = build(name)
    with pytest.raises(BadInput):
        forecasting.learn(forecasting.start(), bad)
