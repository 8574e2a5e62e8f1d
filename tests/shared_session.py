"""A Spark session that modules of tests share while they run one after the other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sluicegate.spark.session import spark_is_gone, spark_session


@dataclass(slots=True)
class SharedSession:
    """The session of the tests in ``folder`` that have a fixture ``spark``; a ``conftest.py`` there calls this."""

    folder: Path
    master: str
    users: set[Path] = field(default_factory=set)
    """The modules with such tests."""
    _running: SparkSession | None = None

    def get(self) -> SparkSession:
        """The session that the module before left running, else a new one."""
        if self._running is None or spark_is_gone(self._running) is not None:
            self._running = spark_session(self.master, {"spark.driver.memory": "1g"}, "sluicegate tests")
        return self._running

    def collected(self, items: Iterable[pytest.Item]) -> None:
        """Note the users among the collected tests."""
        here = (one for one in items if isinstance(one, pytest.Function) and self.folder in one.path.parents)
        self.users.update(one.path for one in here if "spark" in one.fixturenames)

    def leave(self, nextitem: pytest.Item | None) -> None:
        """Stop it before a module without it: that one may start an application of its own in this process."""
        if self._running is not None and (nextitem is None or nextitem.path not in self.users):
            self._running.stop()
            self._running = None
