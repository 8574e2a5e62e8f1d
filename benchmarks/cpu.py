"""Processor time and memory of this process and all it started, from /proc; for benchmarks on Linux."""

from __future__ import annotations

import os
from pathlib import Path

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    """Processor seconds so far of a process and its descendants, those that ended and were waited for included."""
    return sum(sum(map(int, _fields(one)[11:15])) * _TICK_S for one in tree(pid))


def memory_mb(pid: int) -> float:
    """Resident memory of one process."""
    return int(_fields(pid)[21]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def tree(pid: int) -> list[int]:
    """A process and its descendants."""
    parents = {int(path.name): int(_fields(int(path.name))[1]) for path in Path("/proc").iterdir() if _alive(path)}
    found = [pid]
    for one in found:
        found.extend(child for child, parent in parents.items() if parent == one)
    return found


def command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8").replace("\0", " ")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _alive(path: Path) -> bool:
    return path.name.isdigit() and (path / "stat").exists()


def _fields(pid: int) -> list[str]:
    """What follows the command's name in /proc/PID/stat; zeros for a process that has just ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return ["0"] * 50
