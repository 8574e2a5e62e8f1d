"""How a run of a replay is judged.

qos      = share of steps with capacity_t(machines that serve) > lambda_t                       (Eq 22)
cost     = machine steps paid for, held against those of hindsight and of static peak           (Eq 23, 24)
backlog  = largest number of rows that wait, and the longest time that any do
coverage = share of the steps a decision binds in which the load stayed below the forecast's announced quantile
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from sluicegate.domain import Forecast
from sluicegate.lab.replay.players import Facts
from sluicegate.lab.replay.protocol import HINDSIGHT_STEPS, STEP_S
from sluicegate.lab.replay.truth import Floats, Ints, hindsight, static_peak


@dataclass(frozen=True, slots=True)
class Score:
    """One policy on one run."""

    run: int
    qos: float
    machine_steps: int
    rescales: int
    backlog_peak: float
    backlog_drain_s: float
    coverage: float | None = None


@dataclass(frozen=True, slots=True)
class Yardstick:
    """Machine steps of one run's bounds: hindsight per cycle, hindsight per minute, and static peak."""

    hindsight: int
    hindsight_minute: int
    static: int


def yardstick(facts: Facts) -> Yardstick:
    """The same for every policy."""
    told = (facts.truth, facts.rates_per_s, facts.draws)
    return Yardstick(
        hindsight=int(hindsight(*told, HINDSIGHT_STEPS).sum()),
        hindsight_minute=int(hindsight(*told, 1).sum()),
        static=static_peak(*told) * len(facts.rates_per_s),
    )


class Coverage:
    """Counts announced quantiles that held."""

    def __init__(self, level: float | None = None) -> None:
        self.level, self.held, self.number = level, 0, 0

    def add(self, made: Forecast, coming_per_s: Floats, bound: tuple[int, int]) -> None:
        """``coming_per_s`` are the rates after those the forecast knows."""
        first, last = bound
        actual = coming_per_s[first - 1 : last]
        upper = made.upper_per_s(self.level or 0.5)[first - 1 : first - 1 + len(actual)]
        self.held += int(np.count_nonzero(actual[: len(upper)] <= upper))
        self.number += len(upper)

    @property
    def achieved(self) -> float | None:
        return self.held / self.number if self.number else None


def scored(facts: Facts, run: int, asked: Ints, late_steps: int, coverage: float | None = None) -> Score:
    """The score of machines asked for, step by step; new ones serve ``late_steps`` later."""
    carried = facts.truth.at(facts.protocol.serving(asked, late_steps), facts.draws)
    peak, drain = backlog(facts.rates_per_s, carried, STEP_S)
    return Score(
        run=run,
        qos=float(np.mean(carried > facts.rates_per_s)),
        machine_steps=int(asked.sum()),
        rescales=int(np.count_nonzero(np.diff(asked))),
        backlog_peak=float(peak),
        backlog_drain_s=float(drain),
        coverage=coverage,
    )


@njit(cache=True)
def backlog(rates_per_s: Floats, carried_per_s: Floats, step_s: float) -> tuple[float, float]:
    """The largest backlog in rows, and the longest time without an empty one.

    >>> backlog(np.array([5.0, 15.0, 5.0, 5.0]), np.full(4, 10.0), 60.0)
    (300.0, 120.0)
    """
    waiting, peak, since, longest = 0.0, 0.0, 0.0, 0.0
    for t in range(len(rates_per_s)):
        before = waiting
        waiting = max(0.0, waiting + (rates_per_s[t] - carried_per_s[t]) * step_s)
        since = since + step_s if waiting > 0.0 or before > 0.0 else 0.0
        peak, longest = max(peak, waiting), max(longest, since)
    return peak, longest
