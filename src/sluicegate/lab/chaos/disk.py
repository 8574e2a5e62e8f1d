"""A small disk for a run's folder, and one that is full for a while."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sluicegate.errors import EnvironmentLacks
from sluicegate.runlog.files import owner_only_folder

_SMALL_BYTES = 2**30
"""A larger disk is somebody's: it is never filled."""
_AT_ONCE = 1 << 20


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[None]:
    """A file system of its own in memory at ``folder``, for as long as the block lasts; root alone may mount one."""
    owner_only_folder(folder)
    options = f"size={megabytes}m,mode=0700"
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise EnvironmentLacks(f"no small disk can be mounted ({done.stderr.strip()}): be root, or leave --disk out")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False)


def is_small(folder: Path) -> bool:
    """Whether a folder lies on a disk that may be filled: a mount of its own, below 1 GiB."""
    return os.path.ismount(folder) and shutil.disk_usage(folder).total < _SMALL_BYTES


@contextmanager
def full(folder: Path) -> Iterator[None]:
    """No room on the disk of ``folder`` while the block lasts."""
    ballast = folder / "ballast"
    try:
        with ballast.open("ab", buffering=0) as file:
            for size in (_AT_ONCE, 4096, 1):
                with suppress(OSError):
                    while file.write(bytes(size)) == size:
                        pass
        yield
    finally:
        ballast.unlink(missing_ok=True)
