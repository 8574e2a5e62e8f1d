"""Jobs over the local cores. Each is a pure function of picklable values, so another executor can take its place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from multiprocessing import get_context
from typing import Any

from sluicegate.errors import EnvironmentLacks
from sluicegate.lab.replay.jobs import Job, Outcome, Track, record, run_one
from sluicegate.lab.replay.players import BOUNDS, forecaster_of

Progress = Callable[[int, int], None]
Player = Callable[[Sequence[Job], int, Progress | None], list[Outcome]]
Key = tuple[str, str]
# Their forecasts carry scores and are made anew in each job.
STREAMED = ("calibrated",)


def play(jobs: Sequence[Job], workers: int = 1, progress: Progress | None = None) -> list[Outcome]:
    """The outcomes in the order of the jobs; ``progress`` is told how many are done, of how many."""
    told = progress or (lambda done, total: None)
    if workers <= 1 or len(jobs) <= 1:
        return list(_here(jobs, told))
    return _spread(jobs, min(workers, len(jobs)), told)


def track_key(job: Job) -> Key | None:
    """The forecasts a job shares with others, by trace and forecaster; ``None`` if it has none to share."""
    name = None if job.policy in BOUNDS else forecaster_of(job.policy)
    return None if name is None or name in STREAMED else (job.trace, name)


def _here(jobs: Sequence[Job], told: Progress) -> Iterator[Outcome]:
    tracks: dict[Key, Track | None] = {}
    for done, job in enumerate(jobs, start=1):
        key = track_key(job)
        if key is not None and key not in tracks:
            tracks[key] = record(key[1], job.rates_per_s, job.protocol.bound[1])
        yield run_one(job if key is None else replace(job, track=tracks[key]))
        told(done, len(jobs))


def _spread(jobs: Sequence[Job], workers: int, told: Progress) -> list[Outcome]:
    """Forecasts first, then what needs none, then what waited for them."""
    # spawned, not forked: the caller may have threads (a progress bar), and a fork would copy their locks
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        recording: dict[Future[Track | None], Key] = {}
        waiting: dict[Key, list[int]] = {}
        running: dict[Future[Outcome], int] = {}
        for i, job in enumerate(jobs):
            key = track_key(job)
            if key is None:
                continue
            if key not in waiting:
                recording[pool.submit(record, key[1], job.rates_per_s, job.protocol.bound[1])] = key
            waiting.setdefault(key, []).append(i)
        held = {i for entries in waiting.values() for i in entries}
        running.update({pool.submit(run_one, job): i for i, job in enumerate(jobs) if i not in held})
        found: dict[int, Outcome] = {}
        try:
            while recording or running:
                done = wait(_all(recording, running), return_when=FIRST_COMPLETED).done
                for future in [f for f in recording if f in done]:
                    track = future.result()
                    for i in waiting[recording.pop(future)]:
                        running[pool.submit(run_one, replace(jobs[i], track=track))] = i
                for ready in [f for f in running if f in done]:
                    found[running.pop(ready)] = ready.result()
                    told(len(found), len(jobs))
        except BrokenProcessPool:
            raise EnvironmentLacks("a worker process died, most likely of memory: use fewer --cores") from None
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [found[i] for i in range(len(jobs))]


def _all(recording: Iterable[Future[Track | None]], running: Iterable[Future[Outcome]]) -> list[Future[Any]]:
    return [*recording, *running]
