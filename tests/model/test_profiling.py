from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.errors import BadInput, Infeasible
from sluicegate.model.profiling import Grid, TaskTrial, gallop, profile_task, slope, step_by_step


def task(peaks: Callable[[int], float]) -> Callable[[int, float], TaskTrial]:
    """A task that sustains ``peaks(threads)``; above it latency grows."""
    return lambda threads, rate: TaskTrial(0.0 if rate <= peaks(threads) else 0.5, 0.3, 0.2)


def test_the_peak_rates_come_out() -> None:
    found = profile_task("pi", task(lambda t: 110.0 if t == 2 else 105.0), Grid(window=3))
    assert [(p.threads, p.rate_per_s) for p in found.points] == [(1, 105.0), (2, 110.0), (3, 105.0)]


def test_threads_stop_rising_once_the_trailing_window_is_flat() -> None:
    found = profile_task("blob", task(lambda t: 2.0 * min(t, 4)), Grid(window=3))
    assert [p.threads for p in found.points] == [1, 2, 3, 4, 5, 6]


def test_a_falling_task_is_measured_for_one_window() -> None:
    found = profile_task("parse", task(lambda t: 30.0 - t), Grid(window=4))
    assert [p.threads for p in found.points] == [1, 2, 3, 4]


def test_a_window_of_five_sees_through_a_plateau_of_the_rate_grid() -> None:
    slow = task(lambda t: 2.0 + 0.4 * min(t, 20))
    assert profile_task("slow", slow).points[-1].rate_per_s == 10.0


def test_a_task_that_never_tires_ends_at_the_bounds() -> None:
    found = profile_task("endless", task(lambda t: 1e9), Grid(most_threads=3, most_rate_per_s=50.0, window=5))
    assert [(p.threads, p.rate_per_s) for p in found.points] == [(1, 50.0), (2, 50.0), (3, 50.0)]


def test_a_slope_of_exactly_a_thousandth_is_stable() -> None:
    assert TaskTrial(0.001, 0.1, 0.1).stable
    assert not TaskTrial(0.0011, 0.1, 0.1).stable
    assert not TaskTrial(float("nan"), 0.1, 0.1).stable


def test_a_task_unstable_from_the_start_is_refused_with_what_to_do() -> None:
    with pytest.raises(Infeasible, match="lower first_rate_per_s"):
        profile_task("heavy", task(lambda t: 0.5))


def test_thread_counts_that_hold_no_rate_at_all_are_left_out() -> None:
    found = profile_task("fragile", task(lambda t: 5.0 if t < 3 else 0.0), Grid(window=3))
    assert [p.threads for p in found.points] == [1, 2]


def test_usage_is_taken_above_the_idle_slot() -> None:
    found = profile_task("t", task(lambda t: 5.0), Grid(window=2), idle_cpu=0.1, idle_memory=0.15)
    assert found.points[0].cpu == pytest.approx(0.2 / 0.9)
    assert found.points[0].memory == pytest.approx(0.05 / 0.85)


@given(st.integers(-1, 400), st.integers(0, 400))
def test_gallop_finds_what_every_step_finds(limit: int, last: int) -> None:
    def stable(step: int) -> bool:
        return step <= limit

    assert gallop(stable, last) == step_by_step(stable, last) == max(-1, min(limit, last))


def test_gallop_needs_few_trials() -> None:
    tried: list[float] = []

    def run(threads: int, rate: float) -> TaskTrial:
        tried.append(rate)
        return TaskTrial(0.0 if rate <= 60_000 else 1.0, 0.5, 0.1)

    found = profile_task("batch", run, Grid(window=2), search=gallop)
    assert found.points[0].rate_per_s == 60_000
    assert len(tried) < 80


@pytest.mark.parametrize("bad", [{"thread_step": 0}, {"window": 1}, {"most_threads": 0}])
def test_a_grid_that_cannot_be_walked_is_refused(bad: dict[str, int]) -> None:
    with pytest.raises(BadInput):
        Grid(**bad)


@pytest.mark.parametrize(("first", "step"), [(0.0, 1.0), (1.0, 0.0), (2e6, 1.0)])
def test_rates_that_cannot_be_walked_are_refused(first: float, step: float) -> None:
    with pytest.raises(BadInput):
        Grid(first_rate_per_s=first, rate_step_per_s=step)


def test_the_slope_of_a_line_is_its_slope() -> None:
    assert slope([(1, 2.0), (2, 4.0), (4, 8.0)]) == pytest.approx(2.0)
