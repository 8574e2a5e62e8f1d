"""Warms up new executors before they are used: their first tasks load classes and start Python, which takes seconds.

Concurrently with the batches, as many tasks as the executor has slots run the same path as an operator's tasks: Parquet
to Python and back. Until that is done no tasks are placed on it, so that no batch waits for a cold executor.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from sluicegate.runlog.files import owner_only_folder
from sluicegate.spark.act.places import in_tasks
from sluicegate.spark.act.scheduler import Executor
from sluicegate.spark.edges.kept import exact_paths

_ROUNDS = 2
_ROWS = 64


class Warming:
    """Tracks which executors are warm; those present at the first call count as warm."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark, self._folder = spark, folder
        self._warm: set[str] | None = None
        self._begun: set[str] = set()

    def warm_of(self, executors: Sequence[Executor]) -> list[Executor]:
        """The warm executors. Starts warming the others, in a thread for each."""
        if self._warm is None:
            self._warm = {executor.id for executor in executors}
        for executor in executors:
            if executor.id not in self._warm | self._begun:
                self._begun.add(executor.id)
                threading.Thread(
                    target=self._make_warm, args=(executor,), name="sluicegate-warming", daemon=True
                ).start()
        return [executor for executor in executors if executor.id in self._warm]

    def _make_warm(self, executor: Executor) -> None:
        folder = self._folder / executor.id
        try:
            owner_only_folder(self._folder)
            for _ in range(_ROUNDS):
                _through_all(self._spark, executor, folder)
        except (PySparkException, Py4JError):
            pass  # the executor left, or Spark is stopping; a cold executor is only slow, so no error
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            if self._warm is not None:
                self._warm.add(executor.id)


def _through_all(spark: SparkSession, executor: Executor, folder: Path) -> None:
    rows = spark.range(_ROWS * executor.cores, numPartitions=executor.cores)
    here = (f"executor_{executor.host}_{executor.id}",)
    there = in_tasks(rows, executor.cores, here)
    there.mapInPandas(_as_it_is, "id long").write.mode("overwrite").parquet(str(folder))
    read = in_tasks(exact_paths(spark).schema("id long").parquet(str(folder)), executor.cores, here)
    read.mapInPandas(_as_it_is, "id long").write.format("noop").mode("overwrite").save()


def _as_it_is(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    yield from batches
