"""What this machine offers."""

from __future__ import annotations

import os


def usable_cores() -> int:
    """Those this process may use, where the system can say: a container's share is not the machine's."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
