"""Measuring a task once: the profile as a search over trials (model-driven scheduling, Algorithm 1).

    for tau = 1, 1 + dtau, ...                        threads on one slot
        for omega = omega_0, omega_0 + domega, ...    rates, until the trial is unstable
            stable: slope of the rows' latency over time, past the warm-up, <= 0.001
        I(tau) = the last stable omega, with its CPU and memory above the idle slot
        stop when the slope of I over the last ``window`` thread counts is flat or negative

How a trial is run is the caller's: Spark, the simulator, a formula. ``step_by_step`` tries every rate as the paper
does; ``gallop`` doubles its step and then halves the gap, which gives the same answer with far fewer trials wherever a
task that is stable at a rate is stable below it too. A short window stops on a plateau of the rate grid: 3 points
of a task that gains 0.4/s a thread on a grid of 1/s look flat, 5 do not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sluicegate.domain import ProfilePoint, TaskProfile
from sluicegate.errors import BadInput, Infeasible
from sluicegate.model.task_profile import ROUNDING, net_share

STABLE_SLOPE = 0.001
"""Seconds of latency gained per second of trial up to which a trial counts as stable."""


@dataclass(frozen=True, slots=True)
class TaskTrial:
    """One run past its warm-up: how fast latency grew, and the shares of the slot in use (idle base included)."""

    latency_slope: float
    cpu: float
    memory: float

    @property
    def stable(self) -> bool:
        return self.latency_slope <= STABLE_SLOPE


RunTrial = Callable[[int, float], TaskTrial]
"""Threads on one slot and rate per second to the trial's outcome."""

Search = Callable[[Callable[[int], bool], int], int]
"""From "is grid step n stable" and the last step allowed to the highest stable step, -1 if not even step 0 is."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Which threads and rates are tried, and how far. ``most_*`` end a search that nothing else ends."""

    thread_step: int = 1
    first_rate_per_s: float = 1.0
    rate_step_per_s: float = 1.0
    most_threads: int = 256
    most_rate_per_s: float = 1e6
    window: int = 5

    def __post_init__(self) -> None:
        if self.thread_step < 1 or self.most_threads < 1 or self.window < 2:
            raise BadInput(
                "a profiling grid needs thread_step and most_threads of at least 1 and a window of at least 2"
            )
        if not (0 < self.first_rate_per_s <= self.most_rate_per_s < float("inf")) or self.rate_step_per_s <= 0:
            raise BadInput("a profiling grid needs 0 < first_rate_per_s <= most_rate_per_s and rate_step_per_s above 0")

    def rate_per_s(self, step: int) -> float:
        return self.first_rate_per_s + step * self.rate_step_per_s

    @property
    def last_step(self) -> int:
        return int((self.most_rate_per_s - self.first_rate_per_s) / self.rate_step_per_s)


def step_by_step(stable: Callable[[int], bool], last: int) -> int:
    """Every step in turn until one is unstable.

    >>> step_by_step(lambda step: step <= 7, last=100), step_by_step(lambda step: False, last=100)
    (7, -1)
    """
    return next((step - 1 for step in range(last + 1) if not stable(step)), last)


def gallop(stable: Callable[[int], bool], last: int) -> int:
    """Steps 0, 1, 3, 7, ... until one is unstable, then the gap is halved.

    >>> gallop(lambda step: step <= 70, last=100), gallop(lambda step: True, last=100), gallop(lambda s: False, 100)
    (70, 100, -1)
    """
    good, probe = -1, 0
    while stable(probe):
        good = probe
        if good == last:
            return good
        probe = min(2 * probe + 1, last)
    while probe - good > 1:
        middle = (good + probe) // 2
        good, probe = (middle, probe) if stable(middle) else (good, middle)
    return good


def profile_task(
    task: str,
    run: RunTrial,
    grid: Grid | None = None,
    *,
    search: Search = step_by_step,
    idle_cpu: float = 0.0,
    idle_memory: float = 0.0,
) -> TaskProfile:
    """The profile of ``task``, whose trials ``run`` makes.

    >>> run = lambda threads, rate: TaskTrial(0.0 if rate <= 4 * min(threads, 3) else 1.0, 0.25 * min(threads, 3), 0.1)
    >>> [(point.threads, point.rate_per_s) for point in profile_task("t", run, Grid(window=3)).points]
    [(1, 4.0), (2, 8.0), (3, 12.0), (4, 12.0), (5, 12.0)]
    """
    grid = grid or Grid()
    points: list[ProfilePoint] = []
    peaks: list[tuple[int, float]] = []
    for threads in range(1, grid.most_threads + 1, grid.thread_step):
        found = _highest_stable(run, threads, grid, search)
        peaks.append((threads, found[0] if found else 0.0))
        if found:
            rate, trial = found
            cpu, memory = net_share(trial.cpu, idle_cpu), net_share(trial.memory, idle_memory)
            points.append(ProfilePoint(threads, rate, cpu, memory))
        if not points:
            raise Infeasible(
                f"{task!r} is unstable with 1 thread even at {grid.first_rate_per_s:g}/s: lower first_rate_per_s"
            )
        if len(peaks) >= grid.window and slope(peaks[-grid.window :]) <= ROUNDING * grid.rate_step_per_s:
            break
    return TaskProfile(task, tuple(points))


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Of the least-squares line through (x, y) points; 0 through fewer than two different x.

    >>> round(slope([(1, 105.0), (2, 110.0), (3, 105.0)]), 9), slope([(1, 5.0)])
    (0.0, 0.0)
    """
    x, y = np.array(points, dtype=np.float64).T
    spread = float(np.sum((x - x.mean()) ** 2))
    return float(np.sum((x - x.mean()) * (y - y.mean()))) / spread if spread > 0 else 0.0


def _highest_stable(run: RunTrial, threads: int, grid: Grid, search: Search) -> tuple[float, TaskTrial] | None:
    trials: dict[int, TaskTrial] = {}

    def stable(step: int) -> bool:
        trials[step] = run(threads, grid.rate_per_s(step))
        return trials[step].stable

    step = search(stable, grid.last_step)
    return (grid.rate_per_s(step), trials[step]) if step >= 0 else None
