"""Replays a week of every workload under every policy: quality, cost and backlog of each run."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from sluicegate.lab.replay.jobs import Job, facts_of, yardstick
from sluicegate.lab.replay.replay import Progress, play
from sluicegate.lab.replay.world import PROTOCOLS, truth_of
from sluicegate.lab.reproduce.eight_workloads import UNITS, Floats, Workload
from sluicegate.model.mst import choose_model

RHO = 0.95


@dataclass(frozen=True, slots=True)
class WeekTrial:
    """One policy on one workload, ``runs`` times."""

    workload: Workload
    policy: int
    rho: float = RHO
    runs: int = 1


@dataclass(frozen=True, slots=True)
class Fared:
    """The results of a trial, as means over its runs; costs relative to hindsight per cycle and to static peak."""

    trial: WeekTrial
    qos: float
    cost: float
    cost_vs_static: float
    backlog_gb: float


def fare(
    trials: Sequence[WeekTrial], loads: Mapping[str, Floats], workers: int, progress: Progress | None = None
) -> list[Fared]:
    """Play all trials; forecasts of a trace are computed once."""
    jobs = [_job(trial, loads) for trial in trials]
    outcomes = play(jobs, workers, progress)
    found: list[Fared] = []
    for trial, job, outcome in zip(trials, jobs, outcomes, strict=True):
        yards = [yardstick(facts_of(job, score.run)) for score in outcome.scores]
        pairs = list(zip(outcome.scores, yards, strict=True))
        found.append(
            Fared(
                trial=trial,
                qos=fmean(score.qos for score in outcome.scores),
                cost=fmean(score.machine_steps / yard.hindsight for score, yard in pairs),
                cost_vs_static=fmean(score.machine_steps / yard.static for score, yard in pairs),
                backlog_gb=_gb(trial.workload, fmean(score.backlog_peak for score in outcome.scores)),
            )
        )
    return found


def mean_of(fared: Iterable[Fared], what: str) -> float:
    """The mean of one figure over trials."""
    return fmean(getattr(one, what) for one in fared)


def curve_top(trial: WeekTrial, loads: Mapping[str, Floats]) -> int:
    """The machines at which the curve learned before the first run is highest; no policy chooses more by it."""
    facts = facts_of(_job(trial, loads), 0)
    return choose_model(facts.training, facts.validation, largest=facts.truth.most).fewest(sys.float_info.max)[0]


def _job(trial: WeekTrial, loads: Mapping[str, Floats]) -> Job:
    workload = trial.workload
    return Job(
        trace=workload.trace,
        policy=f"uncertainty-{trial.policy}",
        rates_per_s=loads[workload.trace],
        truth=truth_of(workload.points()),
        protocol=PROTOCOLS["cycle"],
        rho=trial.rho,
        seed=sum(map(ord, workload.name)),
        runs=tuple(range(trial.runs)),
        training_sizes=workload.sizes,
        validate=True,
    )


def _gb(workload: Workload, backlog_units: float) -> float:
    return backlog_units * workload.peak_mb_per_s / UNITS / 1000
