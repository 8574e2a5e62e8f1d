from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.lab.replay.world import (
    DEFAULT_POINTS,
    draws_of,
    hindsight,
    measured_sizes,
    static_peak,
    truth_of,
)

DEFAULT = truth_of(DEFAULT_POINTS)


def test_mean_and_variance_are_interpolated_linearly_between_measured_sizes() -> None:
    truth = truth_of([(4, 40.0, 3.0), (8, 60.0, 5.0)])
    assert truth.mean_per_s[6] == 50.0
    assert truth.sd_per_s[6] == pytest.approx(np.sqrt((9 + 25) / 2))


def test_below_the_smallest_size_the_rate_is_in_proportion() -> None:
    truth = truth_of([(4, 40.0, 4.0)])
    assert truth.mean_per_s[:3].tolist() == [0.0, 10.0, 20.0]
    assert truth.sd_per_s[:3].tolist() == [0.0, 1.0, 2.0]


def test_beyond_the_largest_size_no_curve_scales_better_than_in_proportion() -> None:
    truth = truth_of([(2, 5.0, 0.0), (4, 40.0, 0.0)])
    assert truth.mean_per_s[8] == 80.0
    falling = truth_of([(2, 50.0, 0.0), (4, 40.0, 0.0)])
    assert falling.mean_per_s[8] == 40.0


def test_the_default_curve_is_sublinear_with_five_percent_noise() -> None:
    per_machine = DEFAULT.mean_per_s[1:] / np.arange(1, DEFAULT.most + 1)
    assert (np.diff(per_machine[:128]) < 0).all()
    assert DEFAULT.sd_per_s[10] == pytest.approx(0.05 * DEFAULT.mean_per_s[10])


def test_the_draws_depend_on_seed_and_run_alone() -> None:
    assert draws_of(50, 10, 3, 1).tolist() == draws_of(50, 10, 3, 1).tolist()
    assert draws_of(50, 10, 3, 1)[0] != draws_of(50, 10, 3, 2)[0]
    assert draws_of(50, 10, 3, 1)[0] != draws_of(50, 10, 4, 1)[0]


def test_one_draw_lasts_a_cycle() -> None:
    assert len(set(draws_of(100, 10, 0, 0).tolist())) == 10
    assert len(set(draws_of(100, 1, 0, 0).tolist())) == 100


def test_training_measures_only_the_sizes_asked_for() -> None:
    assert [m for m, _ in measured_sizes(DEFAULT, (3, 4, 1000), 0, 0)] == [3, 4]


@given(st.integers(0, 1000), st.sampled_from([1, 10]))
def test_hindsight_is_on_time_always_and_one_machine_less_is_not(seed: int, window: int) -> None:
    rng = np.random.default_rng(seed)
    rates, draws = rng.uniform(0, 20_000, 50), rng.standard_normal(50)
    least = hindsight(DEFAULT, rates, draws, window)
    assert (DEFAULT.at(least, draws) > rates).all()
    short = DEFAULT.at(np.maximum(least - 1, 0), draws) > rates
    assert not short.reshape(-1, window).all(axis=1).any()


def test_static_peak_is_the_largest_of_hindsight() -> None:
    rng = np.random.default_rng(1)
    rates, draws = rng.uniform(0, 20_000, 5000), rng.standard_normal(5000)
    assert static_peak(DEFAULT, rates, draws) == hindsight(DEFAULT, rates, draws, 1).max()


def test_a_load_beyond_all_machines_gets_them_all() -> None:
    rates, draws = np.full(20, 1e9), np.zeros(20)
    assert hindsight(DEFAULT, rates, draws, 10).tolist() == [DEFAULT.most] * 20
    assert static_peak(DEFAULT, rates, draws) == DEFAULT.most
