"""Forecasters by name."""

import numpy as np
import pytest

from sluicegate.errors import BadInput
from sluicegate.forecast.catalogue import FORECASTERS, forecaster


@pytest.mark.parametrize("name", ["arma", "recent-peak", "seasonal"])
def test_every_name_builds_a_forecaster_of_that_name(name: str) -> None:
    built = forecaster(name, step_s=30.0)
    assert (built.name, built.step_s) == (name, 30.0)


@pytest.mark.parametrize("name", sorted(FORECASTERS))
def test_every_entry_says_what_it_is_and_where_it_comes_from(name: str) -> None:
    entry = FORECASTERS[name]
    assert entry.summary
    assert entry.source
    assert "\n" not in entry.summary


@pytest.mark.parametrize("name", ["arma", "recent-peak"])
def test_every_forecaster_ends_up_with_a_forecast_of_as_many_steps_as_asked(name: str) -> None:
    built = forecaster(name)
    memory = built.start()
    for rate in 100 + np.random.default_rng(1).normal(0.0, 5.0, 120):
        memory = built.learn(memory, float(rate))
    forecast = built.forecast(memory, 12)
    assert forecast is not None
    assert len(forecast.mean_per_s) == 12
    assert forecast.step_s == 60.0


def test_options_reach_the_forecaster() -> None:
    peak = forecaster("recent-peak", steps=1, margin=0.0)
    memory = peak.start()
    for rate in [50.0] * 20 + [7.0]:
        memory = peak.learn(memory, rate)
    forecast = peak.forecast(memory, 1)
    assert forecast is not None
    assert forecast.mean_per_s.tolist() == [7.0]


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(BadInput, match=r"unknown forecaster 'oracle': choose one of arma, .*recent-peak, .*seasonal"):
        forecaster("oracle")


def test_an_unknown_option_is_refused_with_the_known_ones() -> None:
    with pytest.raises(BadInput, match="has no option 'colour': it takes window, refit_every, order"):
        forecaster("arma", colour=1)
