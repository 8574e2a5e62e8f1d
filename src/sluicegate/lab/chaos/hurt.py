"""Steps the clock of a driver and its child processes, slows their disk or lets it fail, with a preloaded C library.

The machine's own clock and disk are not changed: the library (``hurt.c``) reads the settings from a mapped file.
"""

from __future__ import annotations

import errno
import os
import random
import shutil
import struct
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

_SOURCE = Path(__file__).with_name("hurt.c")
_NUMBERS = struct.Struct("=qqq")
_NS = 1_000_000_000
_SLOW_S = (2.0, 6.0)
_SLOWER_S = (0.02, 0.4)
"""Added to each file creation, rename and sync: from a loaded network disk to a failing disk."""
_FAILS_S = (0.3, 4.0)
_ERRORS = (errno.EIO, errno.EROFS, errno.ENOSPC, errno.EDQUOT)
_CLOCKS_S = (-3600, -60, -2, 0, 2, 60, 3600)


@dataclass(slots=True)
class Hurt:
    """Clock offset, disk delay and disk error of all processes that preload ``library``; they read it from ``file``."""

    library: Path
    file: Path
    below: Path
    """Where files cannot be created, renamed and synced while the disk fails; any other path still can."""
    clock_s: float = 0.0
    slow_s: float = 0.0
    error: int = 0

    @property
    def environment(self) -> dict[str, str]:
        names = {"LD_PRELOAD": self.library, "SLUICEGATE_HURT": self.file, "SLUICEGATE_HURT_BELOW": self.below}
        return {name: str(path) for name, path in names.items()}

    def step(self, clock_s: float) -> None:
        """Offset the wall clock by ``clock_s`` from the true time."""
        self.clock_s = clock_s
        self._write()

    def slow(self, slow_s: float) -> None:
        """Delay every file creation (``O_CREAT``), rename and sync by ``slow_s``."""
        self.slow_s = slow_s
        self._write()

    def fail(self, error: int) -> None:
        """Let every file creation, rename and sync fail with this error number; 0 ends that."""
        self.error = error
        self._write()

    def _write(self) -> None:
        with self.file.open("r+b") as file:  # in place, since processes have it mapped
            file.write(_NUMBERS.pack(round(self.clock_s * _NS), round(self.slow_s * _NS), self.error))


def hurt_in(folder: Path, below: Path) -> Hurt | None:
    """Compile the library into ``folder``, for a disk at ``below``; ``None`` without a working C compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    made = Hurt(folder / "hurt.so", folder / "hurt", below)
    words = [compiler, "-O1", "-shared", "-fPIC", "-o", str(made.library), str(_SOURCE), "-ldl"]
    if subprocess.run(words, capture_output=True, check=False).returncode:
        return None
    made.file.write_bytes(_NUMBERS.pack(0, 0, 0))
    return made


def failed(hurt: Hurt, rng: random.Random) -> str:
    """Let the disk answer with an error for some seconds."""
    error, pause_s = rng.choice(_ERRORS), rng.uniform(*_FAILS_S)
    hurt.fail(error)
    try:
        time.sleep(pause_s)
    finally:
        hurt.fail(0)
    return f"{os.strerror(error)} for {pause_s:.1f} s"


def stepped(hurt: Hurt, rng: random.Random) -> str:
    """Step the clock forward or back to another offset, and leave it there."""
    before_s = hurt.clock_s
    hurt.step(rng.choice([clock_s for clock_s in _CLOCKS_S if clock_s != before_s]))
    return f"{before_s:+g} s to {hurt.clock_s:+g} s from the true time"


def slowed(hurt: Hurt, rng: random.Random) -> str:
    """Slow the disk for some seconds."""
    slower_s, pause_s = rng.uniform(*_SLOWER_S), rng.uniform(*_SLOW_S)
    hurt.slow(slower_s)
    try:
        time.sleep(pause_s)
    finally:
        hurt.slow(0.0)
    return f"{1000 * slower_s:.0f} ms a file for {pause_s:.1f} s"
