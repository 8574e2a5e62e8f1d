"""Lets processes run out of file handles for a while, as a limit that is too low does: no file, no socket opens."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Iterable, Iterator
from pathlib import Path


@contextlib.contextmanager
def out_of_handles(pids: Iterable[int]) -> Iterator[None]:
    """Lower the limit of open files of other processes to what they have open; what is open stays so. Linux only."""
    before = {pid: limits for pid in pids if (limits := _lowered(pid)) is not None}
    try:
        yield
    finally:
        for pid, limits in before.items():
            with contextlib.suppress(OSError):  # it has ended
                resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)


def _lowered(pid: int) -> tuple[int, int] | None:
    """Lower the limit of one process; returns the limits before, ``None`` if it has ended."""
    with contextlib.suppress(OSError):
        before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        opened = sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (min(opened, before[1]), before[1]))
        return before
    return None
