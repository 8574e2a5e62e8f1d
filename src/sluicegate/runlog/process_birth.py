"""When a process was started: distinguishes it from every other with the same process id."""

from __future__ import annotations

import subprocess
from pathlib import Path


def born(pid: int) -> str | None:
    """Distinguishes this process from every other with the same process id; ``None`` where none runs.

    >>> import os
    >>> born(os.getpid()) == born(os.getpid()), born(2**30)
    (True, None)
    """
    if Path("/proc/self/stat").exists():
        return _born_by_proc(pid)
    done = subprocess.run(["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    state, _, started = done.stdout.strip().partition(" ")
    return started.strip() if started and not state.startswith("Z") else None


def _born_by_proc(pid: int) -> str | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    except OSError:
        return None
    # The name, in brackets, may hold anything; what follows it is the state, and 19 fields later the start in ticks.
    fields = stat.rpartition(")")[2].split()
    return f"{boot}/{fields[19]}" if fields[0] not in "ZX" else None
