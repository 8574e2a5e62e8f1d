from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.dashboard.sample_run import write_run

from sluicegate.dashboard.child import Dashboard


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nobody adds to."""
    return write_run(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def dashboard(run_folder: Path) -> Iterator[Dashboard]:
    """One real server for all tests of a file."""
    with Dashboard(run_folder) as beside:
        yield beside
