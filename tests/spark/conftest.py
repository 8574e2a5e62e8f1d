from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.shared_session import SharedSession

SESSION = SharedSession(Path(__file__).parent, "local[4]")


@pytest.fixture(scope="module")
def spark() -> SparkSession:
    return SESSION.get()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    SESSION.collected(items)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> Generator[None]:
    yield
    SESSION.leave(nextitem)
