"""Mounts a small file system for a run's folder, and fills it for a while."""

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
"""A larger disk is assumed to be in use by others and is never filled."""
_AT_ONCE = 1 << 20
_FILES = 20_000
"""Of a small disk at most: a run has some thousands, and as many as are left are made in a second."""


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[None]:
    """Mount a tmpfs of this size at ``folder`` within the block; needs root."""
    owner_only_folder(folder)
    options = f"size={megabytes}m,nr_inodes={_FILES},mode=0700"
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
    """Whether ``folder`` may be filled: it is a mount point of less than 1 GiB."""
    return os.path.ismount(folder) and shutil.disk_usage(folder).total < _SMALL_BYTES


@contextmanager
def full(folder: Path) -> Iterator[None]:
    """Fill the disk of ``folder`` within the block."""
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


@contextmanager
def out_of_files(folder: Path) -> Iterator[None]:
    """Within the block the disk of ``folder`` has room, and no file can be made on it (it has no inode left)."""
    ballast = folder / "ballast-files"
    ballast.mkdir()
    try:
        with suppress(OSError):
            for number in range(_FILES):
                (ballast / str(number)).touch()
        yield
    finally:
        shutil.rmtree(ballast, ignore_errors=True)
