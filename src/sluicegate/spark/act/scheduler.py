"""Access to the part of Spark's scheduler without a Python API: list, request and drain executors.

The untyped py4j objects stay inside this module.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from sluicegate.errors import BadInput


@dataclass(frozen=True, slots=True)
class Executor:
    """One executor. A ``draining`` one finishes its tasks, takes no new ones, and exits."""

    id: str
    host: str
    cores: int
    active_tasks: int
    added_ms: int
    draining: bool


class Scheduler:
    """The scheduler of a running session."""

    def __init__(self, spark: SparkSession) -> None:
        try:
            self._context = spark.sparkContext
        except PySparkException:
            raise BadInput("a Spark Connect session has no scheduler: run sluicegate where the driver runs") from None
        self._scala = self._context._jsc.sc()

    @property
    def master(self) -> str:
        return str(self._context.master)

    @property
    def has_executors(self) -> bool:
        """False in local mode, where the driver itself is the only executor."""
        return not (self.master == "local" or self.master.startswith("local["))

    def setting(self, key: str) -> str | None:
        """A Spark setting of the application."""
        return self._context.getConf().get(key)

    def executors(self) -> list[Executor]:
        """The registered executors, without the driver."""
        backend = self._scala.schedulerBackend()
        ids = backend.getExecutorIds()
        registered = {str(ids.apply(i)) for i in range(ids.size())}
        listed = self._scala.statusStore().executorList(True)
        rows = [listed.apply(i) for i in range(listed.size())]
        return [
            Executor(
                id=row.id(),
                host=_host(row.hostPort()),
                cores=row.totalCores(),
                active_tasks=row.activeTasks(),
                added_ms=row.addTime().getTime(),
                draining=not backend.isExecutorActive(row.id()),
            )
            for row in rows
            if row.id() in registered
        ]

    def failed_tasks(self) -> int:
        """Tasks that failed since the application began, including those on executors that have left."""
        listed = self._scala.statusStore().executorList(False)
        return sum(int(listed.apply(i).failedTasks()) for i in range(listed.size()))

    def ask_for(self, total: int) -> bool:
        """Set the total executors the application wants; Spark starts missing ones and removes none."""
        nowhere = self._jvm().PythonUtils.toScalaMap({})
        return bool(self._scala.requestTotalExecutors(total, 0, nowhere))

    def drain(self, executor_id: str, reason: str) -> bool:
        """Decommission an executor without changing the requested total; returns whether Spark accepted."""
        jvm = self._jvm()
        told = jvm.org.apache.spark.scheduler.ExecutorDecommissionInfo(reason, jvm.scala.Option.apply(None))
        return bool(self._scala.schedulerBackend().decommissionExecutor(executor_id, told, False, False))

    def _jvm(self) -> Any:
        return self._context._jvm


def _host(address: str) -> str:
    """``HOST:PORT`` without the port; a new executor may have no port yet.

    >>> _host("127.0.0.2:4040"), _host("127.0.0.2"), _host("[::1]:4040")
    ('127.0.0.2', '127.0.0.2', '[::1]')
    """
    return re.sub(r":\d+$", "", address)
