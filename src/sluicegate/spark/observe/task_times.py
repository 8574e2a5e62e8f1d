"""Task run times of a query's batches, from Spark's status store.

The sum over a batch's stages takes a handful of calls into the JVM; single tasks take several calls each, so they are
read only every few seconds (DRS's second layer of sampling), which is enough to see an instance that lags behind.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

_SINGLE_TASKS_EVERY_S = 5.0
_MOST_TASKS = 64
_BATCH = re.compile(r"batch = (\d+)")


@dataclass(frozen=True, slots=True)
class Work:
    """Run times of one batch: ``total_s`` over all tasks, ``None`` if unknown; ``task_s`` by task of the longest stage,
    and ``task_on`` the executor that each ran on."""

    total_s: float | None = None
    task_s: tuple[float, ...] = ()
    task_on: tuple[str, ...] = ()


class TaskTimes:
    """Reads the run times of a query's batches; each job is read once."""

    def __init__(self, spark: SparkSession) -> None:
        context: Any = spark.sparkContext._jsc.sc()  # the status store has no Python API
        self._tracker, self._store = context.statusTracker(), context.statusStore()
        self._last_job: dict[str, int] = {}
        self._looked_s: dict[str, float] = {}

    def of_batch(self, run_id: str, batch: int) -> Work:
        """The work of a finished batch of the query with that run id."""
        before = self._last_job.get(run_id, -1)
        stages: list[tuple[int, float]] = []
        for job in sorted(number for number in self._tracker.getJobIdsForGroup(run_id) if number > before):
            found = self._batch_of(job)
            if found is not None and found > batch:
                break
            self._last_job[run_id] = job
            if found == batch:
                stages.extend(self._stages(job))
        if not stages:
            return Work()
        single = self._single(run_id, max(stages, key=lambda s: s[1])[0])
        run_s, on = zip(*single, strict=True) if single else ((), ())
        return Work(sum(run_s for _, run_s in stages), run_s, on)

    def _batch_of(self, job: int) -> int | None:
        """The batch number of a job, which Spark writes into the job's description."""
        try:
            told = self._store.job(job).description()
        except Py4JJavaError:
            return None
        match = _BATCH.search(told.get()) if told.isDefined() else None
        return int(match[1]) if match else None

    def _stages(self, job: int) -> list[tuple[int, float]]:
        """The finished stages of a job, each with the time its tasks ran."""
        try:
            numbers = self._store.job(job).stageIds()
            found = [self._store.lastStageAttempt(numbers.apply(i)) for i in range(numbers.size())]
            return [(s.stageId(), s.executorRunTime() / 1e3) for s in found if s.status().toString() == "COMPLETE"]
        except Py4JJavaError:
            return []  # evicted already: the store keeps only the newest

    def _single(self, run_id: str, stage: int) -> tuple[tuple[float, str], ...]:
        """Run time and executor of each task; empty if they were read less than 5 s ago."""
        now_s = time.monotonic()
        if now_s - self._looked_s.get(run_id, 0.0) < _SINGLE_TASKS_EVERY_S:
            return ()
        self._looked_s[run_id] = now_s
        try:
            tasks = self._store.taskList(stage, 0, _MOST_TASKS)
            found = sorted((tasks.apply(i) for i in range(tasks.size())), key=lambda task: int(task.index()))
            timed = [(task.taskMetrics(), str(task.executorId())) for task in found]
            return tuple((m.get().executorRunTime() / 1e3, on) for m, on in timed if m.isDefined())
        except Py4JJavaError:
            return ()
