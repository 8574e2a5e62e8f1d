"""Runs replay jobs as Spark tasks: the same pure functions as on the local cores, so the same results."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace

from pyspark.sql import SparkSession

from sluicegate.lab.replay.jobs import Job, JobOutcome, record, run_one
from sluicegate.lab.replay.replay import Key, PlayJobs, Progress, track_key

_LOOK_EVERY_S = 0.5


def play_on(spark: SparkSession) -> PlayJobs:
    """A ``PlayJobs`` function for the session's cluster: one task per job, outcomes in the order of the jobs."""

    def play(jobs: Sequence[Job], workers: int = 1, progress: Progress | None = None) -> list[JobOutcome]:
        context = spark.sparkContext
        wanted: dict[Key, Job] = {}
        for job in jobs:
            key = track_key(job)
            if key is not None:
                wanted.setdefault(key, job)
        # forecasts do not depend on the policy: compute them once per trace, first
        made = [(key, key[1], job.rates_per_s, job.protocol.bound[1]) for key, job in wanted.items()]
        tracks = dict(
            context.parallelize(made, len(made)).map(lambda one: (one[0], record(*one[1:]))).collect() if made else []
        )
        ready = [job if (key := track_key(job)) is None else replace(job, track=tracks[key]) for job in jobs]
        tasks = context.parallelize(ready, max(len(ready), 1)).map(run_one)
        with ThreadPoolExecutor(1, "sluicegate-sweep") as waiting:
            outcomes = waiting.submit(tasks.collect)
            while not wait([outcomes], _LOOK_EVERY_S).done:
                _tell(spark, len(ready), progress)
            return outcomes.result()

    return play


def _tell(spark: SparkSession, total: int, progress: Progress | None) -> None:
    if progress is None:
        return
    tracker = spark.sparkContext.statusTracker()
    stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    done = sum(info.numCompletedTasks for info in stages if info is not None)
    if done:
        progress(min(done, total), total)
