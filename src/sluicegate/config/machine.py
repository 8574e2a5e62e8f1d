"""Facts on this machine and on the installed versions."""

from __future__ import annotations

import os
import platform
import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def usable_cores() -> int:
    """Cores that this process may use, if the system says: a container may have fewer than the machine."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def machine_facts() -> dict[str, str]:
    """The machine that figures measured here hold for."""
    return {
        "processor": _first_in("/proc/cpuinfo", r"model name\s*:\s*(.+)") or platform.processor() or "unknown",
        "cores": str(usable_cores()),
        "memory_gb": _memory_gb(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def version_facts() -> dict[str, str]:
    """The versions that figures measured here hold for."""
    return {"sluicegate": _version("sluicegate"), "spark": _version("pyspark"), "python": platform.python_version()}


def _memory_gb() -> str:
    found = _first_in("/proc/meminfo", r"MemTotal:\s*(\d+)")
    return f"{int(found) / 2**20:.0f}" if found else "unknown"


def _first_in(path: str, pattern: str) -> str:
    try:
        found = re.search(pattern, Path(path).read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return ""
    return " ".join(found[1].split()) if found else ""


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"
