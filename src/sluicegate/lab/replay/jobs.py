"""Splits a replay into self-contained jobs: pure, picklable, to be run in any order on any core.

A run is scored by

qos      = share of steps with capacity_t(machines that serve) > lambda_t                       (Eq 22)
cost     = machine steps paid for, relative to those of hindsight and of static peak            (Eq 23, 24)
backlog  = largest number of waiting rows, and the longest time without an empty backlog
coverage = share of the steps bound by a decision in which the load stayed below the forecast quantile

A job plays one policy on some runs of one trace. Results that do not depend on the policy are computed once: forecasts
small enough to be sent are recorded by a separate job and shared by all policies that use them; forecasts with scores
(4,000 numbers a step) are made once per job, for all of its runs. A policy that does not depend on the run either
(recent peak depends on the load alone) is played once and scored on every run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np
from numba import njit

from sluicegate.domain import Forecast
from sluicegate.forecast.catalogue import forecaster
from sluicegate.lab.replay.players import BOUNDS, Facts, Player, ReplayLane, SharedForecast, forecaster_of, player
from sluicegate.lab.replay.world import (
    HINDSIGHT_STEPS,
    STEP_S,
    Floats,
    Ints,
    Protocol,
    Truth,
    draws_of,
    hindsight,
    measured_sizes,
    static_peak,
)
from sluicegate.model.mst import fit_model, most_disagreeing
from sluicegate.model.mst_samples import samples_of

_JUDGES = 7919
"""Added to the seed, so that validation is an independent measurement."""


@dataclass(frozen=True, slots=True)
class Score:
    """The score of one policy on one run."""

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
    """The bounds of one run; they are the same for every policy."""
    told = (facts.truth, facts.rates_per_s, facts.draws)
    return Yardstick(
        hindsight=int(hindsight(*told, HINDSIGHT_STEPS).sum()),
        hindsight_minute=int(hindsight(*told, 1).sum()),
        static=static_peak(*told) * len(facts.rates_per_s),
    )


class Coverage:
    """Counts the steps in which the load stayed below the forecast quantile ``level``."""

    def __init__(self, level: float | None = None) -> None:
        self.level, self.held, self.number = level, 0, 0

    def add(self, made: Forecast, coming_per_s: Floats, bound: tuple[int, int]) -> None:
        """Count the steps ``bound``; ``coming_per_s`` are the rates after the last one the forecast knows."""
        first, last = bound
        actual = coming_per_s[first - 1 : last]
        upper = made.upper_per_s(self.level or 0.5)[first - 1 : first - 1 + len(actual)]
        self.held += int(np.count_nonzero(actual[: len(upper)] <= upper))
        self.number += len(upper)

    @property
    def achieved(self) -> float | None:
        return self.held / self.number if self.number else None


def scored(facts: Facts, run: int, asked: Ints, late_steps: int, coverage: float | None = None) -> Score:
    """Score the machines requested at each step; new ones serve ``late_steps`` later."""
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
    """The largest backlog in rows, and the longest time in seconds without an empty backlog.

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


@dataclass(frozen=True, eq=False, slots=True)
class ForecastTrack:
    """The forecast made after each step; there is none before step ``first``."""

    first: int
    mean_per_s: Floats
    sd_per_s: Floats

    def at(self, t: int) -> Forecast | None:
        """The forecast that knows the rates of steps 0 to ``t``."""
        i = t - self.first
        return Forecast(STEP_S, self.mean_per_s[i], self.sd_per_s[i]) if 0 <= i < len(self.mean_per_s) else None


@dataclass(frozen=True, eq=False, slots=True)
class Job:
    """One policy on the ``runs`` of one trace; ``rates_per_s`` are per minute, scaled to the capacity."""

    trace: str
    policy: str
    rates_per_s: Floats
    truth: Truth
    protocol: Protocol
    target: float = 0.995
    rho: float = 0.95
    seed: int = 0
    runs: tuple[int, ...] = (0, 1, 2, 3, 4)
    training_sizes: tuple[int, ...] = (3, 4, 6, 8, 24)
    validate: bool = False
    """Whether the size at which the two models differ most is also measured, to choose between them."""
    track: ForecastTrack | None = None


@dataclass(frozen=True, eq=False, slots=True)
class JobOutcome:
    """The scores of a policy on each run, and the machines that served in the first."""

    trace: str
    policy: str
    scores: tuple[Score, ...]
    serving: Ints
    notes: tuple[str, ...] = ()


def record(name: str, rates_per_s: Floats, steps: int) -> ForecastTrack | None:
    """All forecasts of one forecaster over a trace; ``None`` if they carry scores and are too large to keep."""
    means: list[Floats] = []
    sds: list[Floats] = []
    for made in _made(name, rates_per_s, steps):
        if made is not None and len(made.scores):
            return None
        if made is not None:
            means.append(made.mean_per_s)
            sds.append(made.sd_per_s)
    first = len(rates_per_s) - len(means)
    return ForecastTrack(first, np.array(means).reshape(len(means), steps), np.array(sds).reshape(len(sds), steps))


def run_one(job: Job) -> JobOutcome:
    """Play a job; deterministic, wherever it runs."""
    facts = [facts_of(job, run) for run in job.runs]
    if job.policy in BOUNDS:
        return _outcome(job, facts, [_bound(job.policy, known) for known in facts], [], None)
    players = [player(job.policy, known) for known in facts]
    asked, coverage = _played(job, facts, players)
    return _outcome(job, facts, asked, players, coverage.achieved)


def facts_of(job: Job, run: int) -> Facts:
    """The inputs of one run: its draws of the capacity, and the measurements made before it."""
    training = measured_sizes(job.truth, job.training_sizes, job.seed, run)
    return Facts(
        protocol=job.protocol,
        truth=job.truth,
        target=job.target,
        rho=job.rho,
        training=training,
        validation=_judges(job, training, run) if job.validate else (),
        rates_per_s=job.rates_per_s,
        draws=draws_of(len(job.rates_per_s), job.protocol.draw_steps, job.seed, run),
    )


def _judges(job: Job, training: tuple[tuple[int, float], ...], run: int) -> tuple[tuple[int, float], ...]:
    """One measurement at the size where the models differ most; none if they agree everywhere."""
    samples = samples_of(training)
    largest = 2 * samples.largest  # the range of `profile --mst`: beyond it one of the curves may fall below zero
    size = most_disagreeing(fit_model(samples, 1, largest), fit_model(samples, 2, largest))
    return () if size is None else measured_sizes(job.truth, (size,), job.seed + _JUDGES, run)


def _bound(name: str, facts: Facts) -> Ints:
    if name == "hindsight":
        return hindsight(facts.truth, facts.rates_per_s, facts.draws, HINDSIGHT_STEPS)
    return np.full(len(facts.rates_per_s), static_peak(facts.truth, facts.rates_per_s, facts.draws))


def _played(job: Job, facts: list[Facts], players: list[Player]) -> tuple[list[Ints], Coverage]:
    """Requested machines by run, and the coverage; runs that cannot differ share one lane."""
    name = forecaster_of(job.policy)
    feed = SharedForecast() if name else None
    lanes: dict[Any, ReplayLane] = {}
    keys = [_key(p, run) for p, run in zip(players, job.runs, strict=True)]
    for key, one, known in zip(keys, players, facts, strict=True):
        lanes.setdefault(key, ReplayLane(one, known, feed))
    coverage = Coverage(level=_level(job) if name else None)
    for t, made in enumerate(_forecasts(job, name)):
        for lane in lanes.values():
            lane.step(t)
        # it knows the rate of minute t, so it is used by decisions at the start of t + 1
        if feed is not None:
            feed.now = made
            if made is not None and job.protocol.decides(t + 1, players[0].lead_steps):
                coverage.add(made, job.rates_per_s[t + 1 :], job.protocol.bound)
    return [lanes[key].asked_for() for key in keys], coverage


def _key(one: Player, run: int) -> Any:
    return one.settings.policy if one.open_loop else run


def _level(job: Job) -> float:
    return job.rho if job.policy.startswith("uncertainty") else job.target


def _forecasts(job: Job, name: str | None) -> Iterator[Forecast | None]:
    if name is None:
        return repeat(None, len(job.rates_per_s))
    if job.track is not None:
        return map(job.track.at, range(len(job.rates_per_s)))
    return _made(name, job.rates_per_s, job.protocol.bound[1])


def _made(name: str, rates_per_s: Floats, steps: int) -> Iterator[Forecast | None]:
    made_by = forecaster(name, STEP_S)
    memory = made_by.start()
    for rate in rates_per_s.tolist():
        memory = made_by.learn(memory, rate)
        yield made_by.forecast(memory, steps)


def _outcome(
    job: Job, facts: list[Facts], asked: list[Ints], players: list[Player], covered: float | None
) -> JobOutcome:
    late = [one.late_steps for one in players] or [0] * len(facts)
    told = zip(facts, job.runs, asked, late, strict=True)
    scores = tuple(scored(known, run, machines, steps, covered) for known, run, machines, steps in told)
    notes = dict.fromkeys(one.note for one in players if one.note)
    return JobOutcome(job.trace, job.policy, scores, job.protocol.serving(asked[0], late[0]), tuple(notes))
