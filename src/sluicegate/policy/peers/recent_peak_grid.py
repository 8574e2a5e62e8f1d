"""Recent peak with the window and the margin chosen in hindsight: the cheapest of a grid that reaches the target.

    demand(t) = max of the w rates before t x (1 + x),    machines = least m with capacity[m] > demand
    on time = share of steps with capacity[machines that serve] > rate,   cost = machine steps paid for

Not implementable, since w and x are chosen on the same trace on which they are evaluated: it is a bound to beat. Two
protocols, both knowing only the rates of finished steps:

    "cycle": decided once a cycle (10 steps), ``ahead_steps`` (2) before it starts, for all of it
    "free":  decided at every step; a machine serves ``ahead_steps`` after its request and is paid for from the request
             on; stopping takes effect at once (those that still start up are stopped first)

So under "free" the machines that serve at t are the least number wanted at any of the steps t - 2, t - 1, t.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sluicegate.domain.topology import require

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
GridProtocol = Literal["cycle", "free"]

WINDOWS: tuple[int, ...] = tuple(range(3, 21))
MARGINS: tuple[float, ...] = tuple(i / 50 for i in range(21))


@dataclass(frozen=True, slots=True)
class GridPoint:
    """The result of one window and margin."""

    window_steps: int
    margin: float
    on_time: float
    machine_steps: int


@dataclass(frozen=True, slots=True)
class GridAnswer:
    """``cheapest`` reaches the target, ``None`` if no point does; ``best`` is on time most often (then cheapest)."""

    cheapest: GridPoint | None
    best: GridPoint


@dataclass(frozen=True, eq=False, slots=True)
class _Trial:
    """The trace on which the grid is evaluated, from ``first_step``."""

    rates_per_s: Floats
    capacity_per_s: Floats
    protocol: GridProtocol
    cycle_steps: int
    ahead_steps: int
    noise: Floats | None
    first_step: int

    def __post_init__(self) -> None:
        require(self.protocol in ("cycle", "free"), f"protocol {self.protocol!r}: give 'cycle' or 'free'")
        require(len(self.capacity_per_s) > 1, "capacity_per_s needs the capacity of 0 and of 1 machine at least")
        rises = bool((np.diff(self.capacity_per_s) >= 0).all())
        require(rises, "capacity_per_s falls: more machines must not carry less")
        steps = len(self.rates_per_s)
        require(self.noise is None or len(self.noise) == steps, "noise needs one factor per rate")
        judged = 0 <= self.first_step < steps
        require(judged, f"{steps} rates are too few: the first {self.first_step} steps are not judged")


def cheapest_recent_peak(
    rates_per_s: Floats,
    capacity_per_s: Floats,
    target: float,
    *,
    protocol: GridProtocol = "cycle",
    windows: Sequence[int] = WINDOWS,
    margins: Sequence[float] = MARGINS,
    cycle_steps: int = 10,
    ahead_steps: int = 2,
    noise: Floats | None = None,
    first_step: int | None = None,
) -> GridAnswer:
    """The cheapest window and margin that are on time in at least ``target`` of the steps.

    ``capacity_per_s[m]`` is the capacity of m machines, m = 0, 1, 2, ...; it must not fall. ``noise`` multiplies it
    step by step in the evaluation, not in the decisions. Steps before ``first_step`` are not evaluated: by default as
    many as the longest window and the lead take, rounded up to a cycle.

    >>> rates = np.tile([100.0, 120.0, 90.0, 150.0], 100)
    >>> answer = cheapest_recent_peak(
    ...     rates, np.arange(40) * 10.0, 0.995, protocol="free", ahead_steps=1, windows=(1, 2, 4), margins=(0.0, 0.2)
    ... )
    >>> answer.cheapest
    GridPoint(window_steps=4, margin=0.0, on_time=1.0, machine_steps=6240)
    """
    require(bool(windows) and min(windows) >= 1, "windows: give at least one, each of at least 1 step")
    require(bool(margins) and min(margins) >= 0, "margins: give at least one, none below 0")
    require(cycle_steps >= 1 and ahead_steps >= 0, "need cycle_steps >= 1 and ahead_steps >= 0")
    if first_step is None:
        first_step = -(-(max(windows) + ahead_steps) // cycle_steps) * cycle_steps
    trial = _Trial(rates_per_s, capacity_per_s, protocol, cycle_steps, ahead_steps, noise, first_step)
    points = [
        _judged(trial, peaks, window, margin)
        for window, peaks in _past_peaks(rates_per_s, sorted(set(windows)))
        for margin in margins
    ]
    reaching = [point for point in points if point.on_time >= target]
    best = min(points, key=lambda point: (-point.on_time, point.machine_steps))
    return GridAnswer(min(reaching, key=lambda point: point.machine_steps, default=None), best)


def machines_for(demand_per_s: Floats, capacity_per_s: Floats) -> Ints:
    """For each demand the least m with ``capacity[m] > demand``; the largest m if there is none.

    >>> machines_for(np.array([0.0, 9.9, 10.0, 99.0]), np.array([0.0, 10.0, 20.0])).tolist()
    [1, 1, 2, 2]
    """
    found = np.searchsorted(capacity_per_s, demand_per_s, side="right")
    return np.minimum(found, len(capacity_per_s) - 1).astype(np.int64)


def _past_peaks(rates: Floats, windows: Sequence[int]) -> list[tuple[int, Floats]]:
    """For each window the largest of the rates before each step (0 at the first)."""
    peaks = np.zeros(len(rates))
    found: list[tuple[int, Floats]] = []
    for back in range(1, windows[-1] + 1):
        if back < len(rates):
            peaks[back:] = np.maximum(peaks[back:], rates[:-back])
        if back in windows:
            found.append((back, peaks.copy()))
    return found


def _judged(trial: _Trial, peaks: Floats, window: int, margin: float) -> GridPoint:
    first = trial.first_step
    paid, serving = (_cycle if trial.protocol == "cycle" else _free)(trial, peaks * (1 + margin))
    carried = trial.capacity_per_s[serving[first:]]
    if trial.noise is not None:
        carried = carried * trial.noise[first:]
    on_time = float((carried > trial.rates_per_s[first:]).mean())
    return GridPoint(window, margin, on_time, int(paid[first:].sum()))


def _cycle(trial: _Trial, demand_per_s: Floats) -> tuple[Ints, Ints]:
    """Machines paid for and serving, step by step."""
    starts = np.arange(0, len(demand_per_s), trial.cycle_steps)
    decided = machines_for(demand_per_s[np.maximum(starts - trial.ahead_steps, 0)], trial.capacity_per_s)
    held = np.repeat(decided, trial.cycle_steps)[: len(demand_per_s)]
    return held, held


def _free(trial: _Trial, demand_per_s: Floats) -> tuple[Ints, Ints]:
    wanted = machines_for(demand_per_s, trial.capacity_per_s)
    serving = wanted.copy()
    for back in range(1, min(trial.ahead_steps, len(wanted) - 1) + 1):
        serving[back:] = np.minimum(serving[back:], wanted[:-back])
    return wanted, serving
