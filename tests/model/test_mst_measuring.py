"""The K out of N rule."""

import pytest

from sluicegate.errors import BadInput
from sluicegate.model.mst_measuring import converged, mean_known

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
