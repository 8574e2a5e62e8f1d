"""Stores trials of one operator as JSON lines, so that an interrupted measurement can be resumed.

The first line holds the conditions of the measurement; a file of another operator, machine or version is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sluicegate.errors import BadInput
from sluicegate.runlog.batch_log import append_line
from sluicegate.runlog.files import read_if_there

STABLE_SLOPE = 0.001
"""Growth of latency, in seconds per second of trial, up to which a trial counts as stable, as in the paper."""
MOST_BYTES = 10**9
"""A log beyond its size is renamed, but the trials of a measurement have to stay in one file."""
BatchSeen = tuple[int, int, float]
"""Rows, tasks and seconds of one batch."""


@dataclass(frozen=True, slots=True)
class Trial:
    """``threads`` tasks at ``rate_per_s``: the slope of latency, and CPU and memory of the slot, idle base included.

    ``latency_slope`` is seconds of latency per second; ``None`` if batches became so long that none ended. ``cpu`` is
    in cores, ``cpu_s`` the CPU time of all its batches, including those of the backlog.
    """

    threads: int
    rate_per_s: float
    latency_slope: float | None
    latency_s: float | None
    cpu: float
    memory_bytes: int
    cpu_s: float
    batches: tuple[BatchSeen, ...]
    seconds: float = 0.0

    @property
    def stable(self) -> bool:
        return self.latency_slope is not None and self.latency_slope <= STABLE_SLOPE

    @property
    def busiest_per_s(self) -> tuple[int, float]:
        """Rows and seconds of the largest batch, which gives the best estimate of the cost of a row."""
        rows, _, seconds = max(self.batches, default=(0, 0, 1.0))
        return rows, seconds


class TrialFile:
    """Appends trials, and reads those of an earlier measurement under the same conditions."""

    def __init__(self, path: Path, what: Mapping[str, object]) -> None:
        self._path, self._what = path, dict(what)

    def read(self) -> list[Trial]:
        """The trials so far; an incomplete last line, left by a crash, is ignored."""
        text = read_if_there(self._path)
        if not text or "\n" not in text:
            append_line(self._path, json.dumps(self._what), MOST_BYTES)
            return []
        try:
            first, *lines = [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
            self._check(first)
            return [_trial(line) for line in lines]
        except (ValueError, KeyError, TypeError):
            raise BadInput(f"{self._path} holds no trials: delete it, or give another --out") from None

    def add(self, trial: Trial) -> None:
        append_line(self._path, json.dumps(asdict(trial)), MOST_BYTES)

    def _check(self, found: object) -> None:
        before = found if isinstance(found, dict) else {}
        for key, now in self._what.items():
            if before.get(key) != now:
                if key == "source":
                    raise BadInput(
                        f"{self._path} was measured before the application's file was changed: give another --out, or "
                        "delete it to measure anew"
                    )
                raise BadInput(
                    f"{self._path} was measured with {key} {before.get(key)!r}, now it is {now!r}: give another --out, "
                    "or delete it to measure anew"
                )


def _trial(line: Mapping[str, Any]) -> Trial:
    values = dict(line)
    batches = values.pop("batches")
    if not isinstance(batches, list):
        raise TypeError("batches")
    return Trial(**values, batches=tuple((int(n), int(k), float(s)) for n, k, s in batches))
