"""Steps the clock and slows the disk of a driver and its child processes with a preloaded C library.

The machine's own clock and disk are not changed: the library (``hurt.c``) reads both settings from a mapped file.
"""

from __future__ import annotations

import random
import shutil
import struct
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

_SOURCE = Path(__file__).with_name("hurt.c")
_NUMBERS = struct.Struct("=qq")
_NS = 1_000_000_000
_SLOW_S = (2.0, 6.0)
_SLOWER_S = (0.02, 0.4)
"""Added to each file creation, rename and sync: from a loaded network disk to a failing disk."""
_CLOCKS_S = (-3600, -60, -2, 0, 2, 60, 3600)


@dataclass(slots=True)
class Hurt:
    """Clock offset and disk delay of all processes that preload ``library``; they read both from ``file``."""

    library: Path
    file: Path
    clock_s: float = 0.0
    slow_s: float = 0.0

    @property
    def environment(self) -> dict[str, str]:
        return {"LD_PRELOAD": str(self.library), "SLUICEGATE_HURT": str(self.file)}

    def step(self, clock_s: float) -> None:
        """Offset the wall clock by ``clock_s`` from the true time."""
        self.clock_s = clock_s
        self._write()

    def slow(self, slow_s: float) -> None:
        """Delay every file creation (``O_CREAT``), rename and sync by ``slow_s``."""
        self.slow_s = slow_s
        self._write()

    def _write(self) -> None:
        with self.file.open("r+b") as file:  # in place, since processes have it mapped
            file.write(_NUMBERS.pack(round(self.clock_s * _NS), round(self.slow_s * _NS)))


def hurt_in(folder: Path) -> Hurt | None:
    """Compile the library into ``folder``; ``None`` without a working C compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    made = Hurt(folder / "hurt.so", folder / "hurt")
    words = [compiler, "-O1", "-shared", "-fPIC", "-o", str(made.library), str(_SOURCE), "-ldl"]
    if subprocess.run(words, capture_output=True, check=False).returncode:
        return None
    made.file.write_bytes(_NUMBERS.pack(0, 0))
    return made


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
