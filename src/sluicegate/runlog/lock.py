"""Allows one pipeline per folder, by a lock that the system releases however the process ends."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from io import TextIOWrapper
from pathlib import Path

from sluicegate.errors import BadInput, EnvironmentLacks
from sluicegate.runlog.files import owner_only_file, owner_only_folder
from sluicegate.runlog.layout import Layout


def no_room(layout: Layout, problem: OSError) -> EnvironmentLacks:
    """The error for a folder that cannot be written."""
    told = problem.strerror or str(problem)
    return EnvironmentLacks(f"cannot write to {layout.folder}: {told}; make room, or choose another folder")


def locked(layout: Layout) -> TextIOWrapper:
    """Lock a folder until the returned file is closed; refuses a folder in which a pipeline runs."""
    try:
        owner_only_folder(layout.folder)
        _require_closed(layout.folder)
        for folder in layout.spark_writes:
            owner_only_folder(folder)
        lock = owner_only_file(layout.lock).open("a+", encoding="utf-8")
    except OSError as problem:
        raise no_room(layout, problem) from problem
    _take(lock, layout.folder, fcntl.LOCK_EX)
    try:
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
    except OSError as problem:
        with contextlib.suppress(OSError):  # closing tries to write the buffer once more
            lock.close()
        raise no_room(layout, problem) from problem
    return lock


def _require_closed(folder: Path) -> None:
    """Refuse a folder that every user can write to: anyone could change what runs in it, or redirect its logs."""
    rights = stat.S_IMODE(folder.stat().st_mode)
    if rights & stat.S_IWOTH:
        raise BadInput(
            f"every user can write to {folder} ({rights:04o}): run `chmod o-w` on it, or choose another folder"
        )


def check_free(folder: Path) -> None:
    """Refuse a path that is no folder, or a folder in which a pipeline runs: a quick check before Spark starts.

    The lock itself is taken when the pipeline starts; nothing is created here.
    """
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"{folder} is a file: give a folder for the pipeline")
    layout = Layout(folder.absolute())
    if folder.is_dir():
        _require_closed(folder)
    try:
        lock = layout.lock.open("r", encoding="utf-8")
    except OSError:
        return  # nothing ran here, or the problem is reported when the folder is created
    with lock:
        _take(lock, layout.folder, fcntl.LOCK_SH)


def _take(lock: TextIOWrapper, folder: Path, how: int) -> None:
    try:
        fcntl.flock(lock, how | fcntl.LOCK_NB)
    except OSError as problem:
        lock.seek(0)
        process = lock.read().strip()
        lock.close()
        who = f" (process {process})" if process else ""
        raise BadInput(f"a pipeline runs in {folder} already{who}: stop it, or choose another folder") from problem
