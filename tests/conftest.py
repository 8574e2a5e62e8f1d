from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

from sluicegate.spark.cluster.java import QUICK_JAVA

# Compiled code is slow the first time it runs, so no deadline; the same examples on every run, so that a red test is
# the change's doing and not the dice's.
settings.register_profile("sluicegate", deadline=None, derandomize=True)
settings.load_profile("sluicegate")


@pytest.fixture(autouse=True, scope="session")
def a_home_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Runs and clusters of the tests are not those of whoever runs them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLUICEGATE_HOME", str(tmp_path_factory.mktemp("home")))
        yield


@pytest.fixture(autouse=True, scope="session")
def a_java_that_starts_quickly() -> Iterator[None]:
    """Spark's drivers live for a minute here: what the thorough compiler would gain, they never see."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_SUBMIT_OPTS", QUICK_JAVA)
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests first: begun last, the longest would keep one worker busy while the other has nothing."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)
