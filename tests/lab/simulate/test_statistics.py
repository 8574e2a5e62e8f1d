from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.lab.simulate.statistics import BINS, growth_per_s, quantile, ratio
from sluicegate.lab.simulate.statistics import bin_edges as edges
from sluicegate.lab.simulate.statistics import count_time as count


def test_the_interval_of_independent_values_covers_as_often_as_it_says() -> None:
    random = np.random.default_rng(1)
    covered = 0
    for _ in range(400):
        counts = random.poisson(30.0, 180).astype(np.float64)
        sums = counts * random.normal(5.0, 1.0, 180)
        found = ratio(sums, counts)
        assert found is not None
        assert found.half_width is not None
        covered += abs(found.mean - 5.0) <= found.half_width
    assert covered / 400 >= 0.93


def test_values_alike_their_neighbours_widen_the_interval() -> None:
    random = np.random.default_rng(2)
    noise = random.normal(0.0, 1.0, 180)
    drifting = np.convolve(random.normal(0.0, 1.0, 199), np.ones(20) / math.sqrt(20), "valid")
    apart, alike = ratio(noise + 9, np.ones(180)), ratio(drifting + 9, np.ones(180))
    assert apart is not None
    assert apart.half_width is not None
    assert alike is not None
    assert alike.half_width is not None
    assert alike.half_width > 2 * apart.half_width


def test_nothing_counted_gives_no_estimate() -> None:
    assert ratio(np.zeros(20), np.zeros(20)) is None


def test_too_few_windows_give_a_mean_without_a_bound() -> None:
    found = ratio(np.array([2.0]), np.array([1.0]))
    assert found is not None
    assert (found.mean, found.half_width) == (2.0, None)


def test_a_level_run_does_not_grow() -> None:
    assert growth_per_s(np.full(50, 7.0), 2.0) == 0.0
    assert growth_per_s(np.array([3.0]), 2.0) == 0.0


@given(st.lists(st.floats(1e-9, 1e9), min_size=1, max_size=200), st.sampled_from([0.5, 0.95, 0.99]))
def test_a_quantile_is_off_by_at_most_the_width_of_a_bin(values: list[float], level: float) -> None:
    counted = np.zeros(BINS, dtype=np.int64)
    for value in values:
        count(counted, value)
    exact = float(np.quantile(values, level, method="inverted_cdf"))
    found = quantile(counted, level)
    assert found is not None
    assert exact / 1.04 <= found <= exact * 1.04


def test_values_beyond_the_range_go_to_its_ends() -> None:
    counted = np.zeros(BINS, dtype=np.int64)
    for value in (0.0, 1e-300, 1e300):
        count(counted, value)
    assert counted[0] == 2
    assert counted[-1] == 1


def test_bins_are_at_most_3_percent_wide() -> None:
    bounds = edges()
    assert float((bounds[1:] / bounds[:-1]).max()) == pytest.approx(1 + 1 / 32)
