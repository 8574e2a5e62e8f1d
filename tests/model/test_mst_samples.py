"""Samples kept by size."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.errors import BadInput
from sluicegate.model.mst_samples import converged, mean_known, samples_of

pairs = st.lists(st.tuples(st.integers(1, 9), st.floats(1.0, 1e6)), min_size=1, max_size=40)


@given(pairs)
def test_what_is_kept_gives_the_residuals_of_every_sample(drawn: list[tuple[int, float]]) -> None:
    samples = samples_of(drawn)
    line = {m: 1000.0 * m for m, _ in drawn}
    expected = sum((rate - line[m]) ** 2 for m, rate in drawn)
    assert samples.residual_squares(np.array([line[int(m)] for m in samples.sizes])) == pytest.approx(expected)
    assert samples.number == len(drawn)
    assert samples.largest == max(m for m, _ in drawn)


@given(pairs)
def test_sizes_rise_each_once(drawn: list[tuple[int, float]]) -> None:
    assert samples_of(drawn).sizes.tolist() == sorted({m for m, _ in drawn})


def test_one_more_sample_leaves_the_first_value_as_it_was() -> None:
    before = samples_of([(3, 100.0)])
    after = before.with_one(3, 200.0).with_one(1, 40.0)
    assert before.mean_per_s.tolist() == [100.0]
    assert after.mean_per_s.tolist() == [40.0, 150.0]
    assert after.mean_inverse_s.tolist() == pytest.approx([1 / 40, (1 / 100 + 1 / 200) / 2])


@pytest.mark.parametrize("pair", [(0, 10.0), (3, 0.0), (3, -1.0), (3, float("inf")), (3, float("nan"))])
def test_a_sample_that_is_none_is_refused(pair: tuple[int, float]) -> None:
    with pytest.raises(BadInput):
        samples_of([pair])


def test_no_samples_are_refused() -> None:
    with pytest.raises(BadInput, match="measure at least one"):
        samples_of([])


def test_a_rate_that_is_no_bound_leaves_the_residuals_finite() -> None:
    samples = samples_of([(1, 1e308), (2, 1.0)])
    assert np.isfinite(samples.residual_squares(np.zeros(2)))
    assert np.isfinite(samples.with_one(1, 1.0).residual_squares(np.zeros(2)))


RISING = [10.0, 30.0, 60.0, 90.0]


def test_a_throughput_that_still_rises_has_not_converged() -> None:
    assert not converged([10.0, 20.0, 40.0, 60.0, 80.0, 100.0, 120.0])


def test_four_of_five_steady_samples_are_enough() -> None:
    assert converged([*RISING, 100.0, 101.0, 99.0, 100.0, 101.0])
    assert converged([100.0, 101.0, 99.0, 140.0, 141.0, 140.0])


def test_a_spike_that_returns_counts_twice() -> None:
    assert not converged([100.0, 101.0, 140.0, 100.0, 101.0, 100.0])


def test_the_first_of_the_five_needs_one_before_it() -> None:
    assert not converged([100.0] * 5)
    assert converged([100.0] * 6)


def test_exactly_delta_off_is_within_delta() -> None:
    assert converged([100.0, 105.0, 100.0, 105.0, 100.0, 105.0], steady=3)


def test_more_steady_samples_than_samples_is_refused() -> None:
    with pytest.raises(BadInput, match="6 of 5"):
        converged([1.0] * 9, latest=5, steady=6)
    with pytest.raises(BadInput, match="delta"):
        converged([1.0] * 9, delta=-0.1)


def test_samples_that_scatter_about_a_known_mean_tell_the_throughput() -> None:
    scattered = [100.0 + off for off in (-14, 11, 13, -9, 12, -13, 9, -11, 12, -10)]
    assert not converged(scattered, delta=0.1)
    assert mean_known(scattered, delta=0.1)
    assert not mean_known(scattered, delta=0.05)
    assert not mean_known(scattered[:9], delta=0.1)


def test_a_mean_that_still_moves_is_not_known() -> None:
    assert not mean_known([*[90.0] * 5, *[105.0] * 5], delta=0.1)
