"""One Spark session for the modules of this folder that run one after the other."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sluicegate.spark.session import spark_is_gone, spark_session

_RUNNING: list[SparkSession] = []
_USERS: set[Path] = set()
"""The modules that have tests with this session."""


@pytest.fixture(scope="module")
def spark() -> SparkSession:
    """The session of the module before, if it used one and left it alive, else a new one."""
    if _RUNNING and spark_is_gone(_RUNNING[0]) is not None:
        _RUNNING.clear()
    if not _RUNNING:
        _RUNNING.append(spark_session("local[4]", {"spark.driver.memory": "1g"}))
    return _RUNNING[0]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = (item for item in items if isinstance(item, pytest.Function) and Path(__file__).parent in item.path.parents)
    _USERS.update(item.path for item in here if "spark" in item.fixturenames)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> Generator[None]:
    """Stop the session before a module without it: that one may start an application of its own in this process."""
    yield
    if _RUNNING and (nextitem is None or nextitem.path not in _USERS):
        _RUNNING.pop().stop()
