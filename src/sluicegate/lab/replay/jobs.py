"""The work of a replay cut into jobs that know everything they need: pure, picklable, in any order, on any core.

A job plays one policy on some runs of one trace. What does not depend on the policy is worked out once: forecasts small
enough to be sent are recorded by a job of their own and shared by all policies that use them; forecasts with scores
(4,000 numbers a step) are made once in the job, for all of its runs together. What does not depend on the run either
(recent peak: it looks at the load alone) is played once and judged on every run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np

from sluicegate.domain import Forecast
from sluicegate.forecast.catalogue import forecaster
from sluicegate.lab.replay.lane import Feed, Lane
from sluicegate.lab.replay.players import BOUNDS, Facts, Player, forecaster_of, player
from sluicegate.lab.replay.protocol import HINDSIGHT_STEPS, STEP_S, Protocol
from sluicegate.lab.replay.score import Coverage, Score, scored
from sluicegate.lab.replay.truth import (
    Floats,
    Ints,
    Truth,
    draws_of,
    hindsight,
    measured_sizes,
    static_peak,
)


@dataclass(frozen=True, eq=False, slots=True)
class Track:
    """Every step's forecast, as made when the step had passed; no row before ``first``."""

    first: int
    mean_per_s: Floats
    sd_per_s: Floats

    def at(self, t: int) -> Forecast | None:
        """The forecast that knows the rates of steps 0 to ``t``."""
        i = t - self.first
        return Forecast(STEP_S, self.mean_per_s[i], self.sd_per_s[i]) if 0 <= i < len(self.mean_per_s) else None


@dataclass(frozen=True, eq=False, slots=True)
class Job:
    """One policy on the ``runs`` of one trace; ``rates_per_s`` are those of its minutes, scaled to the capacity."""

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
    track: Track | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Outcome:
    """How a policy fared on each run, and the machines that served in the first."""

    trace: str
    policy: str
    scores: tuple[Score, ...]
    serving: Ints
    notes: tuple[str, ...] = ()


def record(name: str, rates_per_s: Floats, steps: int) -> Track | None:
    """All forecasts of one forecaster over a trace; ``None`` where they carry scores and are too large to keep."""
    means: list[Floats] = []
    sds: list[Floats] = []
    for made in _made(name, rates_per_s, steps):
        if made is not None and len(made.scores):
            return None
        if made is not None:
            means.append(made.mean_per_s)
            sds.append(made.sd_per_s)
    first = len(rates_per_s) - len(means)
    return Track(first, np.array(means).reshape(len(means), steps), np.array(sds).reshape(len(sds), steps))


def run_one(job: Job) -> Outcome:
    """Play a job; the same job gives the same outcome anywhere."""
    facts = [facts_of(job, run) for run in job.runs]
    if job.policy in BOUNDS:
        return _outcome(job, facts, [_bound(job.policy, known) for known in facts], [], None)
    players = [player(job.policy, known) for known in facts]
    asked, coverage = _played(job, facts, players)
    return _outcome(job, facts, asked, players, coverage.achieved)


def facts_of(job: Job, run: int) -> Facts:
    """What holds on one run: its draws of the capacity, and what was measured before it."""
    return Facts(
        protocol=job.protocol,
        truth=job.truth,
        target=job.target,
        rho=job.rho,
        training=measured_sizes(job.truth, job.training_sizes, job.seed, run),
        rates_per_s=job.rates_per_s,
        draws=draws_of(len(job.rates_per_s), job.protocol.draw_steps, job.seed, run),
    )


def _bound(name: str, facts: Facts) -> Ints:
    if name == "hindsight":
        return hindsight(facts.truth, facts.rates_per_s, facts.draws, HINDSIGHT_STEPS)
    return np.full(len(facts.rates_per_s), static_peak(facts.truth, facts.rates_per_s, facts.draws))


def _played(job: Job, facts: list[Facts], players: list[Player]) -> tuple[list[Ints], Coverage]:
    """Machines asked for, run by run; lanes that cannot differ are played once."""
    name = forecaster_of(job.policy)
    feed = Feed() if name else None
    lanes: dict[Any, Lane] = {}
    keys = [_key(p, run) for p, run in zip(players, job.runs, strict=True)]
    for key, one, known in zip(keys, players, facts, strict=True):
        lanes.setdefault(key, Lane(one, known, feed))
    coverage = Coverage(level=_level(job) if name else None)
    for t, made in enumerate(_forecasts(job, name)):
        for lane in lanes.values():
            lane.step(t)
        # made with the rate of minute t: seen by those that decide when t + 1 starts
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


def _outcome(job: Job, facts: list[Facts], asked: list[Ints], players: list[Player], covered: float | None) -> Outcome:
    late = [one.late_steps for one in players] or [0] * len(facts)
    told = zip(facts, job.runs, asked, late, strict=True)
    scores = tuple(scored(known, run, machines, steps, covered) for known, run, machines, steps in told)
    notes = dict.fromkeys(one.note for one in players if one.note)
    return Outcome(job.trace, job.policy, scores, job.protocol.serving(asked[0], late[0]), tuple(notes))
