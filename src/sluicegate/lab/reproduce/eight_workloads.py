"""The eight workloads of uncertainty-aware scheduling: a week of load, capacity curves, and how a policy fares in it.

The traces cannot be redistributed: a generator replaces each one that is not given.

    World Cup    a daily swing, and on most days two matches: a steep rise, two hours of crowd, a fall
    tweets       a daily swing, evenings highest, with noise
    flights      a smooth daily swing

All rates are in thousandths of the workload's peak, so that the six applications on one trace share its forecasts;
MB/s follow from the peak. The measured capacity curves are not available. Ours: the capacity of m machines is

    peak x x (1 + s)/(1 + s x)      x = m/M                          most: a form that the model can learn
    peak x x (1 - d x)/(1 - d)                                       unique visitor, page view, hashtags

with M machines for the peak and 4% noise. The second kind bends down beyond the training sizes: according to the paper
these three are overestimated at first. VHT does not scale: one machine has 1.5 times the capacity its peak needs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from sluicegate.config.trace_file import read_trace
from sluicegate.lab.replay.jobs import Job, facts_of, yardstick
from sluicegate.lab.replay.replay import Progress, play
from sluicegate.lab.replay.world import LEAST_TABLE, PROTOCOLS, Point, truth_of
from sluicegate.model.mst import choose_model

Floats = NDArray[np.float64]

STEPS = 5760
"""Four of the paper's seven days, including the first large spike, so that all workloads take less than a minute."""
UNITS = 1000.0
"""The peak of every workload, in thousandths of it."""
NOISE = 0.04
_DAY = 1440
_FEW = (3, 4, 6, 8, 24)
_FLIGHT_SIZES = (1, 2, 3, 5, 6, 8, 9, 11, 12, 14)
TRACES = ("World Cup 98", "tweets", "ADS-B")


@dataclass(frozen=True, slots=True)
class Workload:
    """An application on a trace; ``machines`` carry its peak, ``saturation`` s or ``bend`` d shape the curve."""

    name: str
    trace: str
    peak_mb_per_s: float
    machines: int
    saturation: float = 0.0
    bend: float = 0.0
    sizes: tuple[int, ...] = _FEW
    scales: bool = True

    def points(self) -> tuple[Point, ...]:
        """(machines, units/s, deviation) up to 128 machines.

        >>> [round(rate) for _, rate, _ in WORKLOADS[0].points()][:4]
        [27, 53, 80, 106]
        """
        x = np.arange(1, LEAST_TABLE + 1, dtype=np.float64) / self.machines
        if not self.scales:
            x = np.full(LEAST_TABLE, 1.5)
        # beyond its maximum a bent curve stays flat, as surplus machines may idle
        bent = np.maximum.accumulate(x * (1 - self.bend * x)) / (1 - self.bend)
        rates = UNITS * bent * (1 + self.saturation) / (1 + self.saturation * x)
        return tuple((m, float(rate), NOISE * float(rate)) for m, rate in enumerate(rates, start=1))


WORKLOADS = (
    Workload("Grep", "World Cup 98", 32.0, 48, saturation=0.3),
    Workload("Rolling Count", "World Cup 98", 10.0, 48, saturation=2.0),
    Workload("Unique Visitor", "World Cup 98", 48.0, 48, bend=0.4),
    Workload("Page View", "World Cup 98", 46.0, 48, bend=0.4),
    Workload("Data Clean", "World Cup 98", 5.0, 48, saturation=1.0),
    Workload("VHT", "World Cup 98", 49.0, 1, scales=False),
    Workload("Rolling Hashtag Count", "tweets", 200.0, 64, bend=0.4),
    Workload("Rolling Flight Distances", "ADS-B", 0.83, 14, saturation=0.3, sizes=_FLIGHT_SIZES),
)


def week_loads(given: Sequence[Path], steps: int = STEPS) -> tuple[dict[str, Floats], dict[str, str]]:
    """A load for each trace, scaled to a peak of 1000, and its origin; ``given`` has paths in the order of traces."""
    loads: dict[str, Floats] = {}
    origins: dict[str, str] = {}
    for number, name in enumerate(TRACES):
        if number < len(given):
            values = read_trace(given[number]).values[:steps]
            origins[name] = f"{given[number].name}, {len(values):,} minutes"
        else:
            values, origins[name] = _GENERATORS[name](steps), f"generated, {steps:,} minutes"
        loads[name] = values * (UNITS / float(values.max()))
    return loads, origins


def world_cup(steps: int, seed: int = 1998) -> Floats:
    """Quiet nights, busier afternoons, and matches that multiply the load within minutes."""
    rng = np.random.default_rng(seed)
    minute = np.arange(steps)
    load = 100 + 50 * _daily(minute, peak_at=17 * 60)
    for day in range(-(-steps // _DAY)):
        if day % 7 in (0, 1, 4, 5):
            for kick_off in (14.5 * 60, 19 * 60):
                load += rng.uniform(150, 500) * _match((minute - day * _DAY).astype(np.float64) - kick_off)
    return _noisy(load, 0.04, rng)


def tweets(steps: int, seed: int = 2016) -> Floats:
    rng = np.random.default_rng(seed)
    return _noisy(100 + 60 * _daily(np.arange(steps), peak_at=21 * 60), 0.04, rng)


def flights(steps: int, seed: int = 2017) -> Floats:
    rng = np.random.default_rng(seed)
    return _noisy(100 + 30 * _daily(np.arange(steps), peak_at=16 * 60), 0.015, rng)


_GENERATORS: dict[str, Callable[[int], Floats]] = {"World Cup 98": world_cup, "tweets": tweets, "ADS-B": flights}


def _daily(minute: NDArray[np.int64], peak_at: float) -> Floats:
    swing: Floats = np.cos(2 * np.pi * (minute - peak_at) / _DAY)
    return swing


def _match(since: Floats) -> Floats:
    """Shape of a match: 0 before, up within 20 minutes, full for 110, down within half an hour."""
    crowd: Floats = np.interp(since, [0, 20, 130, 160], [0.0, 1.0, 0.9, 0.0], left=0.0, right=0.0)
    return crowd


def _noisy(load: Floats, rsd: float, rng: np.random.Generator) -> Floats:
    noise = rng.standard_normal(len(load))
    smooth = np.convolve(noise, np.ones(5) / np.sqrt(5), mode="same")
    noisy: Floats = np.maximum(load * (1 + rsd * (0.7 * smooth + 0.7 * noise)), 1.0)
    return noisy


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
