"""The registry of runs: a small file each under ``$SLUICEGATE_HOME/runs``, so that other commands find them.

A run that was killed cannot record that it ended. It is identified by its process and that process's start time, so a
stale file is never taken for a running run. Folders that sluicegate created itself are deleted once enough newer runs
exist.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from sluicegate.errors import BadInput
from sluicegate.runlog.files import read_if_there, write_whole
from sluicegate.runlog.process_birth import born

_KEPT = 10
"""How many runs are remembered; for older ones the file is deleted, and the folder if it was temporary."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run's folder and process. ``temporary``: sluicegate made the folder, so sluicegate may remove it."""

    folder: str
    app: str
    pid: int
    born: str
    started_s: float
    temporary: bool = False
    ended: bool = False

    @property
    def running(self) -> bool:
        return not self.ended and born(self.pid) == self.born

    @property
    def there(self) -> bool:
        return (Path(self.folder) / "pipeline.json").exists()


def home_folder() -> Path:
    """Where sluicegate keeps what is in no run's own folder: ``$SLUICEGATE_HOME``, or ``~/.sluicegate``."""
    home = os.environ.get("SLUICEGATE_HOME")
    return Path(home) if home else Path.home() / ".sluicegate"


def runs_folder() -> Path:
    """The folder of the registry, beside the cluster that ``sluicegate cluster up`` remembers."""
    return home_folder() / "runs"


@contextmanager
def registered(folder: Path, app: str, *, temporary: bool) -> Iterator[str]:
    """Register a run while the block lasts, and mark it as ended after; yields why that failed, or ''."""
    now = born(os.getpid()) or ""
    entry = Run(str(folder.absolute()), app, os.getpid(), now, time.time(), temporary)
    path = runs_folder() / f"{int(entry.started_s * 1000)}-{uuid.uuid4().hex[:6]}.json"
    try:
        _forget_old(entry.folder)
        write_whole(path, json.dumps(asdict(entry)))
        problem = ""
    except OSError as failed:
        problem = f"{runs_folder()} cannot be written ({failed.strerror}): name this run's folder to other commands"
    try:
        yield problem
    finally:
        if not problem:
            with contextlib.suppress(OSError):
                write_whole(path, json.dumps(asdict(replace(entry, ended=True))))


def known_runs() -> list[Run]:
    """All registered runs, newest first; a file that cannot be read is skipped."""
    return [run for _, run in _entries()]


def no_run_in(folder: Path) -> BadInput:
    return BadInput(f"no run in {folder}: it has no pipeline.json; give a run's folder, or none for the newest run")


def find_run(folder: Path | None = None) -> Path:
    """The given folder, else that of the newest running run, else that of the newest that still exists."""
    if folder is not None:
        if not (folder / "pipeline.json").exists():
            raise no_run_in(folder)
        return folder
    there = [run for run in known_runs() if run.there]
    chosen = next((run for run in there if run.running), there[0] if there else None)
    if chosen is None:
        raise BadInput(
            "no run is known here: attach an application (spark-submit $(sluicegate conf) app.py), start one with "
            "`sluicegate demo` or `sluicegate run APP`, or give a run's folder"
        )
    return Path(chosen.folder)


def _entries() -> list[tuple[Path, Run]]:
    paths = sorted(runs_folder().glob("*.json"), key=lambda path: path.name, reverse=True)
    read = ((path, _run_of(read_if_there(path))) for path in paths)
    return [(path, run) for path, run in read if run is not None]


def _run_of(text: str | None) -> Run | None:
    try:
        return Run(**json.loads(text or ""))
    except (ValueError, TypeError):
        return None


def _forget_old(ours: str) -> None:
    """Delete the entries of old ended runs, and temporary folders, except those of live applications.

    An attached application has an entry for every start of its controller: that one of them ended says nothing.
    """
    entries = _entries()
    live = {ours, *(run.folder for _, run in entries if run.running)}
    for path, run in [one for one in entries if not one[1].running][_KEPT - 1 :]:
        if run.temporary and run.folder not in live:
            if driver_lives(Path(run.folder)):
                continue  # its controller is between two starts
            shutil.rmtree(run.folder, ignore_errors=True)
        path.unlink(missing_ok=True)


def driver_lives(folder: Path) -> bool:
    """Whether the driver of an attached application holds its folder's lock, which is a POSIX one."""
    try:
        with (folder / "lock").open("r+b") as lock:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False
