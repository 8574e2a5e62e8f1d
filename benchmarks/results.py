"""What benchmarks measured, as lines of JSON: one a run, with the machine, versions and date it is of.

`benchmarks/results/PART.jsonl` is written by the benchmark of that part and read by `page.py`, which makes
docs/benchmarks.md of it; nothing on that page is typed by hand.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

RESULTS = Path(os.environ.get("BENCH_RESULTS") or Path(__file__).resolve().parent / "results")
"""Elsewhere for runs whose figures do not count, such as those of the tests."""


def record(part: str, **figures: Any) -> None:
    """Append one run's figures to a part."""
    RESULTS.mkdir(exist_ok=True)
    line = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "machine": {"cores": os.cpu_count(), "memory_gib": _memory_gib(), "load_1min": round(os.getloadavg()[0], 1)},
        "versions": {"python": platform.python_version(), "pyspark": version("pyspark")},
        **figures,
    }
    with (RESULTS / f"{part}.jsonl").open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(line) + "\n")


def read(part: str) -> list[Mapping[str, Any]]:
    """The lines of a part; none if it has not run."""
    path = RESULTS / f"{part}.jsonl"
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def clear(part: str) -> None:
    """Forget what an earlier run measured, before a part is measured anew."""
    (RESULTS / f"{part}.jsonl").unlink(missing_ok=True)


def forget(part: str, **which: Any) -> None:
    """Forget the lines of a part whose figures are these, before what takes their place is recorded."""
    kept = [line for line in read(part) if any(line.get(key) != value for key, value in which.items())]
    if (RESULTS / f"{part}.jsonl").exists():
        (RESULTS / f"{part}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in kept), encoding="utf-8")


def taken(part: str) -> str:
    """All that is recorded of a part, to be put back should measuring it anew give nothing."""
    path = RESULTS / f"{part}.jsonl"
    return path.read_text(encoding="utf-8") if path.exists() else ""


def put_back(part: str, text: str) -> None:
    if text:
        (RESULTS / f"{part}.jsonl").write_text(text, encoding="utf-8")


@cache
def _commit() -> str:
    root = Path(__file__).resolve().parents[1]
    said = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=root, capture_output=True, text=True, check=False
    )
    return said.stdout.strip() or "unknown"


@cache
def _memory_gib() -> int:
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
