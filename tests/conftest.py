from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from sluicegate.spark.cluster.java import QUICK_JAVA

# Compiled code is slow the first time it runs, so no deadline; the same examples on every run, so that a red test is
# the change's doing and not the dice's.
settings.register_profile("sluicegate", deadline=None, derandomize=True)
settings.load_profile("sluicegate")

ROOT = Path(__file__).parent
ARCHIVE = Path(sys.prefix) / "spark.jsa"
"""Made by scripts/java_archive.py."""
LONGEST = (
    "attach/test_follow.py",
    "attach/test_exactness.py",
    "cli/test_demo.py",
    "cli/test_run_file.py",
    "benchmarks/test_nexmark.py",
    "attach/test_killed.py",
    "test_tutorial.py",
    "test_readme.py",
)
"""Files that take a minute or more, longest first."""


@pytest.fixture(autouse=True, scope="session")
def a_home_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Runs and clusters of the tests are not those of whoever runs them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLUICEGATE_HOME", str(tmp_path_factory.mktemp("home")))
        yield


@pytest.fixture(autouse=True, scope="session")
def a_java_that_starts_quickly() -> Iterator[None]:
    """Spark's drivers live for a minute here: what the thorough compiler would gain, they never see.

    With the archive that `make test` leaves, they and the daemons of clusters load Spark's classes in half the
    processor time.
    """
    shared = f"-XX:SharedArchiveFile={ARCHIVE} -Xlog:cds*=off" if ARCHIVE.exists() else ""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_SUBMIT_OPTS", f"{QUICK_JAVA} {shared}")
        patch.setenv("SPARK_DAEMON_JAVA_OPTS", shared)
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first: begun last, one would keep a worker busy while the other has nothing to do."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    rank = {str(ROOT / name): place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: (rank.get(str(item.path), len(rank)), item.path not in slow))
