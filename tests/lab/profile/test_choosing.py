"""Which trial comes next, on operators whose peak rate is known: it is found with few trials, and flat is noticed."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.lab.profile.choosing import (
    LEAST_PER_S,
    NARROW,
    Bracket,
    believed,
    counts,
    known_of,
    next_trial,
    reached,
)
from sluicegate.lab.profile.trials import Trial

OVERHEAD_S, LONGEST_S = 0.2, 2.0


def made(threads: int, rate_per_s: float, peak_per_s: float) -> Trial:
    """A trial of an operator that sustains ``peak_per_s``: its batches follow the micro-batch law."""
    capacity = peak_per_s / (1 - OVERHEAD_S / LONGEST_S)
    rows = round(rate_per_s * LONGEST_S)
    batch = (rows, threads, OVERHEAD_S + rows / capacity)
    return Trial(threads, rate_per_s, 0.0 if rate_per_s <= peak_per_s else 0.3, 1.0, 0.5, 10**6, 1.0, (batch,))


def measured(peaks: dict[int, float], first_per_s: float, most_trials: int = 60) -> list[Trial]:
    trials: list[Trial] = []
    while len(trials) < most_trials:
        known = [known_of(k, trials, OVERHEAD_S, LONGEST_S) for k in peaks]
        coming = next_trial(known, first_per_s)
        if coming is None:
            return trials
        trials.append(made(coming.threads, coming.rate_per_s, peaks[coming.threads]))
    raise AssertionError("it does not end")


def test_every_thread_count_has_a_point_before_any_is_refined() -> None:
    trials = measured({1: 50.0, 2: 100.0, 4: 200.0, 8: 400.0}, first_per_s=40.0)
    assert [trial.threads for trial in trials[:4]] == [1, 2, 4, 8]


def test_the_peak_of_every_count_is_bracketed() -> None:
    peaks = {1: 37.0, 2: 70.0, 4: 118.0}
    trials = measured(peaks, first_per_s=20.0)
    for threads, peak in peaks.items():
        known = known_of(threads, trials, OVERHEAD_S, LONGEST_S)
        assert known.low_per_s <= peak < known.high_per_s
        assert known.width <= NARROW
    assert len(trials) <= 12


def test_more_threads_are_not_tried_once_the_peak_is_flat() -> None:
    trials = measured({1: 100.0, 2: 101.0, 4: 101.0, 8: 101.0}, first_per_s=80.0)
    assert {trial.threads for trial in trials} == {1, 2}


@given(
    peak=st.floats(1.0, 20_000.0),
    first=st.floats(0.1, 100_000.0),
    gains=st.lists(st.floats(0.7, 2.0), min_size=3, max_size=3),
)
def test_it_ends_with_a_point_of_one_thread_whatever_the_operator(
    peak: float, first: float, gains: list[float]
) -> None:
    peaks = {k: peak * math.prod(gains[:n]) for n, k in enumerate(counts(8))}
    trials = measured(peaks, first)
    known = known_of(1, trials, OVERHEAD_S, LONGEST_S)
    assert 0.9 * peak <= known.low_per_s <= peak


def test_a_count_that_a_cold_machine_failed_is_tried_again() -> None:
    """One task could not do 90 rows/s when the first batches compiled; two did 300 later."""
    trials = [made(1, 90.0, 60.0), made(1, 55.0, 60.0), made(2, 300.0, 320.0)]
    cold = [known_of(k, trials, OVERHEAD_S, LONGEST_S) for k in (1, 2)]
    warm = [known_of(k, believed(trials), OVERHEAD_S, LONGEST_S) for k in (1, 2)]
    assert cold[0].high_per_s == 90.0
    assert math.isinf(warm[0].high_per_s)


def test_an_operator_that_never_keeps_up_is_given_up() -> None:
    assert next_trial([Bracket(1, 0.0, 0.5), Bracket(2)], first_per_s=10.0) is None
    assert reached([Bracket(1, 0.0, 0.5), Bracket(2)])[-1].low_per_s == 0.0


@pytest.mark.parametrize(("most", "expected"), [(1, (1,)), (8, (1, 2, 4, 8)), (6, (1, 2, 4, 6))])
def test_counts_double_up_to_the_slots_tasks(most: int, expected: tuple[int, ...]) -> None:
    assert counts(most) == expected


def test_where_overhead_alone_takes_the_longest_batch_no_capacity_is_made_up() -> None:
    """Many tasks: their overhead of 2.4 s would make the capacity negative, and with it the next rate."""
    trial = Trial(64, 100.0, 3.0, 9.0, 1.0, 0, 1.0, ((500, 64, 6.0),))
    known = known_of(64, [trial], overhead_s=2.4, longest_s=2.0)
    assert known == Bracket(64, 0.0, 100.0, None)
    coming = next_trial([known], first_per_s=40.0)
    assert coming is not None
    assert LEAST_PER_S <= coming.rate_per_s < 100.0
