"""Replays load traces against policies, every policy under the same draws of the capacity, and reports the results.

    rates = trace x (mean capacity of up to ``PEAK_MACHINES`` machines, or ``peak_per_s``) / the trace's maximum

Each figure is the mean over the runs; a run has its own draws of the capacity and its own noisy measurements of the few
sizes that capacity models are trained on. The same seed gives the same figures, on any number of cores.
Jobs run on the local cores (``play``), or by any other function of that signature (``PlayJobs``).
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing import active_children, get_context
from statistics import fmean
from threading import current_thread, main_thread
from typing import Any

from sluicegate.domain.figures import rate
from sluicegate.domain.topology import require, require_number
from sluicegate.errors import BadInput, EnvironmentLacks
from sluicegate.lab.replay.jobs import (
    ForecastTrack,
    Job,
    JobOutcome,
    Score,
    Yardstick,
    facts_of,
    record,
    run_one,
    yardstick,
)
from sluicegate.lab.replay.players import BEST_RECENT_PEAK, BOUNDS, forecaster_of
from sluicegate.lab.replay.world import HINDSIGHT_STEPS, Floats, Ints, Protocol, Truth

Progress = Callable[[int, int], None]
PlayJobs = Callable[[Sequence[Job], int, Progress | None], list[JobOutcome]]
Key = tuple[str, str]
# Forecasters whose forecasts carry scores; they are computed in each job.
STREAMED = ("calibrated",)


def play(jobs: Sequence[Job], workers: int = 1, progress: Progress | None = None) -> list[JobOutcome]:
    """The outcomes in the order of the jobs; ``progress`` is called with (done, total)."""
    told = progress or (lambda done, total: None)
    if workers <= 1 or len(jobs) <= 1:
        return list(_here(jobs, told))
    return _spread(jobs, min(workers, len(jobs)), told)


def track_key(job: Job) -> Key | None:
    """(Trace, forecaster) of the forecasts that a job shares with others; ``None`` if it shares none."""
    name = None if job.policy in BOUNDS else forecaster_of(job.policy)
    return None if name is None or name in STREAMED else (job.trace, name)


def _here(jobs: Sequence[Job], told: Progress) -> Iterator[JobOutcome]:
    tracks: dict[Key, ForecastTrack | None] = {}
    for done, job in enumerate(jobs, start=1):
        key = track_key(job)
        if key is not None and key not in tracks:
            tracks[key] = record(key[1], job.rates_per_s, job.protocol.bound[1])
        yield run_one(job if key is None else replace(job, track=tracks[key]))
        told(done, len(jobs))


def _spread(jobs: Sequence[Job], workers: int, told: Progress) -> list[JobOutcome]:
    """Run in a process pool: forecasts first, then jobs without forecasts, then those that use them."""
    # spawn, not fork: the caller may have threads (a progress bar), and a fork would copy their held locks
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        recording: dict[Future[ForecastTrack | None], Key] = {}
        waiting: dict[Key, list[int]] = {}
        running: dict[Future[JobOutcome], int] = {}
        found: dict[int, JobOutcome] = {}
        try:
            for i, job in enumerate(jobs):
                key = track_key(job)
                if key is None:
                    continue
                if key not in waiting:
                    recording[_submit(pool, record, key[1], job.rates_per_s, job.protocol.bound[1])] = key
                waiting.setdefault(key, []).append(i)
            held = {i for entries in waiting.values() for i in entries}
            running.update({_submit(pool, run_one, job): i for i, job in enumerate(jobs) if i not in held})
            while recording or running:
                done = wait(_all(recording, running), return_when=FIRST_COMPLETED).done
                for future in [f for f in recording if f in done]:
                    track = future.result()
                    for i in waiting[recording.pop(future)]:
                        running[_submit(pool, run_one, replace(jobs[i], track=track))] = i
                for ready in [f for f in running if f in done]:
                    found[running.pop(ready)] = ready.result()
                    told(len(found), len(jobs))
        except BrokenProcessPool:
            raise EnvironmentLacks("a worker process died, most likely of memory: use fewer --cores") from None
        except BaseException:
            for worker in active_children():
                worker.terminate()
            pool.shutdown(wait=True, cancel_futures=True)  # else Python may complain of the pool's thread as it ends
            raise
    return [found[i] for i in range(len(jobs))]


def _submit(pool: ProcessPoolExecutor, function: Callable[..., Any], *given: object) -> Future[Any]:
    with _ctrl_c_waits():
        return pool.submit(function, *given)


@contextmanager
def _ctrl_c_waits() -> Iterator[None]:
    """A process that is started in this block does not hear Ctrl-C: it would print where it was, and is ended anyway.

    For the same reason Ctrl-C does not come between its start and what it is told first.
    """
    if current_thread() is not main_thread():
        yield
        return
    came: list[int] = []
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    before = signal.signal(signal.SIGINT, lambda number, frame: came.append(number))  # heard by another thread
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    if came:
        raise KeyboardInterrupt


def _all(recording: Iterable[Future[ForecastTrack | None]], running: Iterable[Future[JobOutcome]]) -> list[Future[Any]]:
    return [*recording, *running]


PEAK_MACHINES = 32


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """Options of a replay. ``target`` is the promised share of steps on time."""

    policies: tuple[str, ...]
    protocol: Protocol
    target: float = 0.995
    rho: float = 0.95
    runs: int = 5
    seed: int = 0
    peak_per_s: float | None = None
    training_sizes: tuple[int, ...] = (3, 4, 6, 8, 24)

    def __post_init__(self) -> None:
        require(0 < self.target < 1, f"target is {self.target}: give a share between 0 and 1, such as 0.995")
        require(0.5 <= self.rho < 1, f"rho is {self.rho}: give a probability from 0.5 to below 1, such as 0.95")
        require(1 <= self.runs <= 10_000, f"runs is {self.runs}: give 1 to 10000")
        require(self.seed >= 0, f"seed is {self.seed}: give 0 or more")
        if self.peak_per_s is not None:
            require_number(self.peak_per_s, "peak", above=True)
        sizes = self.training_sizes
        require(bool(sizes) and min(sizes) >= 1, "training sizes: give at least one, each 1 or more")


@dataclass(frozen=True, eq=False, slots=True)
class Result:
    """One policy on one trace: means over the runs, and the machines that served in the first."""

    policy: str
    qos: float
    cost_vs_hindsight: float
    cost_vs_hindsight_minute: float
    cost_vs_static: float
    rescales: float
    backlog_peak: float
    backlog_drain_s: float
    coverage: float | None
    qos_by_run: tuple[float, ...]
    cost_by_run: tuple[float, ...]
    notes: tuple[str, ...]
    serving: Ints


@dataclass(frozen=True, eq=False, slots=True)
class TraceReport:
    """All policies on one trace; ``rates_per_s`` as replayed."""

    trace: str
    rates_per_s: Floats
    results: tuple[Result, ...]
    notes: tuple[str, ...]


def replay(
    traces: Sequence[tuple[str, Floats]],
    truth: Truth,
    options: ReplayOptions,
    workers: int = 1,
    progress: Progress | None = None,
    play_jobs: PlayJobs = play,
) -> list[TraceReport]:
    """Play every policy on every trace, on ``workers`` processes, or wherever ``play_jobs`` runs them.

    >>> import numpy as np
    >>> from sluicegate.lab.replay.world import PROTOCOLS
    >>> from sluicegate.lab.replay.world import DEFAULT_POINTS, truth_of
    >>> load = 100.0 + 50.0 * np.sin(np.arange(200) / 20)
    >>> options = ReplayOptions(("hindsight", "static-peak"), PROTOCOLS["cycle"], runs=1)
    >>> report = replay([("sine", load)], truth_of(DEFAULT_POINTS), options)[0]
    >>> [(result.policy, result.qos) for result in report.results]
    [('hindsight', 1.0), ('static-peak', 1.0)]
    """
    names = [name for name, _ in traces]
    require(len(set(names)) == len(names), "two traces have the same name: give each once")
    scaled = [(name, *_scaled(name, values, truth, options.peak_per_s)) for name, values in traces]
    jobs = [job for name, rates, _ in scaled for job in jobs_of(name, rates, truth, options, workers)]
    outcomes = play_jobs(jobs, workers, progress)
    return [
        TraceReport(name, rates, _results(name, rates, truth, options, outcomes), (note,))
        for name, rates, note in scaled
    ]


def jobs_of(trace: str, rates_per_s: Floats, truth: Truth, options: ReplayOptions, workers: int = 1) -> list[Job]:
    """The jobs of one trace, the longest-running first."""
    return [
        Job(
            trace=trace,
            policy=policy,
            rates_per_s=rates_per_s,
            truth=truth,
            protocol=options.protocol,
            target=options.target,
            rho=options.rho,
            seed=options.seed,
            runs=runs,
            training_sizes=options.training_sizes,
        )
        for policy in sorted(options.policies, key=lambda name: _forecast_by(name) not in STREAMED)
        for runs in _shared(policy, options.runs, workers)
    ]


def _shared(policy: str, runs: int, workers: int) -> Iterable[tuple[int, ...]]:
    """The runs of each job of a policy: together if they share work, else one by one."""
    every = tuple(range(runs))
    if policy in (*BOUNDS, "recent-peak", BEST_RECENT_PEAK):
        return [every]
    if _forecast_by(policy) in STREAMED:
        parts = min(max(workers, 1), runs)
        return [every[i::parts] for i in range(parts)]
    return [(run,) for run in every]


def _forecast_by(policy: str) -> str | None:
    return None if policy in BOUNDS else forecaster_of(policy)


def _scaled(name: str, values: Floats, truth: Truth, peak_per_s: float | None) -> tuple[Floats, str]:
    """The scaled rates to replay, and a note on the scaling."""
    least = 2 * HINDSIGHT_STEPS
    if len(values) < least:
        raise BadInput(f"{name}: {len(values)} minutes are too few: replay needs at least {least}")
    top = float(values.max())
    if not top > 0:
        raise BadInput(f"{name}: the load is 0 throughout: there is nothing to scale")
    machines = min(PEAK_MACHINES, max(1, truth.measured * 2 // 3))
    # slightly below, so that this number of machines is enough on average
    peak = 0.999 * float(truth.mean_per_s[machines]) if peak_per_s is None else peak_per_s
    needed = truth.needs(peak)
    if not truth.mean_per_s[needed] > peak:
        carried = float(truth.mean_per_s.max())
        raise BadInput(f"{name}: a peak of {rate(peak, 6)} exceeds all capacity ({rate(carried, 6)}): lower --peak")
    rates: Floats = values * (peak / top)
    beyond = f", beyond the {truth.measured} measured" if needed > truth.measured else ""
    return rates, f"scaled to a peak of {rate(peak)}, which needs {needed} machines on average{beyond}"


def _results(
    trace: str, rates: Floats, truth: Truth, options: ReplayOptions, outcomes: list[JobOutcome]
) -> tuple[Result, ...]:
    example = jobs_of(trace, rates, truth, options)[0]
    yards = [yardstick(facts_of(example, run)) for run in range(options.runs)]
    by_policy: dict[str, list[JobOutcome]] = {policy: [] for policy in options.policies}
    for outcome in outcomes:
        if outcome.trace == trace:
            by_policy[outcome.policy].append(outcome)
    return tuple(_result(policy, found, yards) for policy, found in by_policy.items())


def _result(policy: str, outcomes: list[JobOutcome], yards: list[Yardstick]) -> Result:
    first = min(outcomes, key=lambda outcome: outcome.scores[0].run)
    scores = sorted((score for outcome in outcomes for score in outcome.scores), key=lambda score: score.run)
    costs = tuple(score.machine_steps / yards[score.run].hindsight for score in scores)
    coverages = [score.coverage for score in scores if score.coverage is not None]

    def mean(of: Callable[[Score], float]) -> float:
        return fmean(of(score) for score in scores)

    return Result(
        policy=policy,
        qos=mean(lambda score: score.qos),
        cost_vs_hindsight=fmean(costs),
        cost_vs_hindsight_minute=mean(lambda score: score.machine_steps / yards[score.run].hindsight_minute),
        cost_vs_static=mean(lambda score: score.machine_steps / yards[score.run].static),
        rescales=mean(lambda score: score.rescales),
        backlog_peak=mean(lambda score: score.backlog_peak),
        backlog_drain_s=mean(lambda score: score.backlog_drain_s),
        coverage=fmean(coverages) if coverages else None,
        qos_by_run=tuple(score.qos for score in scores),
        cost_by_run=costs,
        notes=tuple(dict.fromkeys(note for outcome in outcomes for note in outcome.notes)),
        serving=first.serving,
    )
