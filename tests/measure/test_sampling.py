from __future__ import annotations

import numpy as np
import pytest

from sluicegate.errors import BadInput
from sluicegate.measure.sampling import InstanceSample, Tally, pull


def sampled(every: int, rows: int, seed: int) -> InstanceSample:
    rng = np.random.default_rng(seed)
    sample = InstanceSample(every)
    for service_s, gap_s in zip(rng.exponential(0.01, rows), rng.exponential(0.02, rows), strict=True):
        sample = sample.row(float(service_s), float(gap_s))
    return sample


def test_every_row_is_counted_and_every_nth_is_timed() -> None:
    sample = sampled(every=5, rows=103, seed=1)
    assert sample.seen == 103
    assert sample.service_s.count == 21


def test_instances_add_up_to_their_operator() -> None:
    seen = pull([sampled(3, 3000, 1), sampled(3, 6000, 2)], interval_s=60.0)
    assert seen.arrivals_per_s == 150.0
    assert seen.service_per_s == pytest.approx(100.0, rel=0.1)
    assert seen.service_scv == pytest.approx(1.0, abs=0.15)
    assert seen.arrival_scv == pytest.approx(1.0, abs=0.15)


def test_what_was_not_sampled_stays_missing() -> None:
    assert pull([], 60.0).arrivals_per_s is None
    idle = pull([InstanceSample()], 60.0)
    assert (idle.arrivals_per_s, idle.service_per_s, idle.service_scv) == (0.0, None, None)


def test_one_value_has_a_mean_and_no_variability() -> None:
    assert Tally().plus(2.0).mean == 2.0
    assert Tally().plus(2.0).scv is None


@pytest.mark.parametrize("bad", [(-1.0, 0.0), (0.0, float("nan")), (float("inf"), 1.0)])
def test_times_that_cannot_be_are_refused(bad: tuple[float, float]) -> None:
    with pytest.raises(BadInput):
        InstanceSample().row(*bad)


def test_intervals_and_sampling_steps_must_be_positive() -> None:
    with pytest.raises(BadInput):
        pull([InstanceSample()], 0.0)
    with pytest.raises(BadInput):
        InstanceSample(every=0)
