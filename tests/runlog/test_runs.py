"""The registry of runs: what is forgotten, and what is not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sluicegate.runlog.runs import _KEPT, known_runs, registered


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICEGATE_HOME", str(tmp_path / "home"))


def made(folder: Path) -> Path:
    folder.mkdir()
    (folder / "pipeline.json").write_text("{}")
    return folder


def ended(folder: Path) -> None:
    with registered(folder, "app", temporary=True):
        pass


def test_old_ended_runs_are_forgotten_with_their_temporary_folders(tmp_path: Path) -> None:
    folders = [made(tmp_path / f"run{number}") for number in range(_KEPT + 3)]
    for folder in folders:
        ended(folder)
    assert len(known_runs()) == _KEPT
    assert [folder.exists() for folder in folders] == [False] * 3 + [True] * _KEPT


def test_a_controller_that_is_started_again_and_again_keeps_its_folder(tmp_path: Path) -> None:
    folder = made(tmp_path / "live")
    for _ in range(_KEPT + 5):
        ended(folder)
    assert folder.exists()


def test_the_folder_of_an_application_that_runs_survives_the_entry_of_a_controller_that_died(tmp_path: Path) -> None:
    folder = made(tmp_path / "live")
    ended(folder)
    with registered(folder, "app", temporary=True):
        for number in range(_KEPT + 5):
            ended(made(tmp_path / f"other{number}"))
        assert folder.exists()


def test_a_folder_whose_driver_holds_its_lock_is_not_deleted(tmp_path: Path) -> None:
    folder = made(tmp_path / "live")
    ended(folder)
    (folder / "lock").touch()
    holds = "import fcntl, sys; f = open(sys.argv[1], 'r+b'); fcntl.lockf(f, fcntl.LOCK_EX); print(flush=True); input()"
    words = [sys.executable, "-c", holds, str(folder / "lock")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as driver:
        assert driver.stdout is not None
        driver.stdout.readline()
        for number in range(_KEPT + 5):
            ended(made(tmp_path / f"other{number}"))
        assert folder.exists()
        driver.communicate(b"\n")
    for number in range(_KEPT + 5):
        ended(made(tmp_path / f"later{number}"))
    assert not folder.exists()
