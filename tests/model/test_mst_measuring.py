"""The K out of N rule."""

import pytest

from sluicegate.errors import BadInput
from sluicegate.model.mst_measuring import converged, measured_mst

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


def test_the_measured_throughput_is_the_mean_of_the_latest() -> None:
    assert measured_mst([*RISING, 100.0, 102.0, 98.0, 100.0, 100.0]) == pytest.approx(100.0)
    assert measured_mst(RISING) is None
    assert measured_mst([]) is None


def test_a_job_that_does_nothing_has_no_throughput_to_measure() -> None:
    assert measured_mst([0.0] * 10) is None


def test_more_steady_samples_than_samples_is_refused() -> None:
    with pytest.raises(BadInput, match="6 of 5"):
        converged([1.0] * 9, latest=5, steady=6)
    with pytest.raises(BadInput, match="delta"):
        converged([1.0] * 9, delta=-0.1)
