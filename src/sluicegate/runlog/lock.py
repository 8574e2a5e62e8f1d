"""Allows one pipeline per folder, by a lock that the system releases however the process ends.

The folder itself is locked besides the file ``lock`` in it: somebody may delete that file as left over while the
pipeline runs, and a second pipeline would lock a new one. File systems that lock no folders have the file alone.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from types import TracebackType

from sluicegate.errors import BadInput, EnvironmentLacks
from sluicegate.runlog.files import owner_only_file, owner_only_folder
from sluicegate.runlog.layout import Layout


@dataclass(slots=True)
class FolderLock:
    """The lock of a folder until it is closed."""

    folder: Path
    file: TextIOWrapper
    handle: int | None
    """Of the folder itself."""

    def check(self) -> None:
        """Raise if the path leads to another folder now, or to none: whoever runs there would write into ours."""
        if self.handle is None:
            return
        try:
            now = self.folder.stat()
        except FileNotFoundError:
            now = None
        except OSError:  # a file system that does not answer for a while
            return
        if now is None or not os.path.samestat(now, os.fstat(self.handle)):
            # a folder without a description is one that this pipeline's own writers made anew
            other = now is not None and Layout(self.folder).description.exists()
            what = "was replaced by another folder" if other else "was deleted or moved"
            raise BadInput(
                f"{self.folder} {what} while its pipeline ran: stopped; put it back to go on, or start in a new folder"
            )

    def close(self) -> None:
        self.file.close()
        if self.handle is not None:
            os.close(self.handle)
            self.handle = None

    def __enter__(self) -> FolderLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def no_room(layout: Layout, problem: OSError) -> EnvironmentLacks:
    """The error for a folder that cannot be written."""
    told = problem.strerror or str(problem)
    return EnvironmentLacks(f"cannot write to {layout.folder}: {told}; make room, or choose another folder")


def locked(layout: Layout) -> FolderLock:
    """Lock a folder; refuses one in which a pipeline runs."""
    try:
        owner_only_folder(layout.folder)
        _require_closed(layout.folder)
        for folder in layout.spark_writes:
            owner_only_folder(folder)
        lock = owner_only_file(layout.lock).open("a+", encoding="utf-8")
    except OSError as problem:
        raise no_room(layout, problem) from problem
    _take(lock, layout.folder, fcntl.LOCK_EX)
    handle = _take_folder(lock, layout.folder, fcntl.LOCK_EX)
    try:
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
    except OSError as problem:
        with contextlib.suppress(OSError):  # closing tries to write the buffer once more
            lock.close()
        if handle is not None:
            os.close(handle)
        raise no_room(layout, problem) from problem
    return FolderLock(layout.folder, lock, handle)


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
    if not folder.is_dir():
        return
    _require_closed(folder)
    layout = Layout(folder.absolute())
    with contextlib.suppress(OSError), layout.lock.open("r", encoding="utf-8") as lock:
        _take(lock, layout.folder, fcntl.LOCK_SH)
    handle = _take_folder(None, layout.folder, fcntl.LOCK_SH)
    if handle is not None:
        os.close(handle)


@contextlib.contextmanager
def kept_free(folder: Path) -> Iterator[None]:
    """Like ``check_free``, and no pipeline starts in the folder meanwhile. Nothing is written: the disk may be full."""
    check_free(folder)
    layout = Layout(folder.absolute())
    with contextlib.ExitStack() as held:
        with contextlib.suppress(OSError):
            lock = held.enter_context(layout.lock.open("r", encoding="utf-8"))
            _take(lock, layout.folder, fcntl.LOCK_SH)
        handle = _take_folder(None, layout.folder, fcntl.LOCK_SH)
        if handle is not None:
            held.callback(os.close, handle)
        yield


def _take(lock: TextIOWrapper, folder: Path, how: int) -> None:
    try:
        fcntl.flock(lock, how | fcntl.LOCK_NB)
    except OSError as problem:
        lock.seek(0)
        process = lock.read().strip()
        lock.close()
        who = f" (process {process})" if process else ""
        raise _runs(folder, who) from problem


def _take_folder(lock: TextIOWrapper | None, folder: Path, how: int) -> int | None:
    """A handle of the folder, locked; ``None`` where folders cannot be locked."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return None
    try:
        fcntl.flock(handle, how | fcntl.LOCK_NB)
    except BlockingIOError as problem:
        os.close(handle)
        if lock is not None:
            lock.close()
        raise _runs(folder, ", and its file `lock` was deleted") from problem
    except OSError:  # a network's file system
        os.close(handle)
        return None
    return handle


def _runs(folder: Path, who: str) -> BadInput:
    return BadInput(f"a pipeline runs in {folder} already{who}: stop it, or choose another folder")
