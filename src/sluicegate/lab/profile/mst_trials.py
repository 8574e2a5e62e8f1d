"""Stores what an application sustained on some nodes as JSON lines, so that an interrupted measurement can be resumed.

Unlike the trials of one operator, those of other conditions may stand in the same file: they are left out.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, stdev

from sluicegate.config.capacity_file import Use
from sluicegate.lab.profile.trials import MOST_BYTES
from sluicegate.runlog.batch_log import append_line


@dataclass(frozen=True, slots=True)
class MstTrial:
    """One size: its throughput samples, the slowest operator, and the startup time of its nodes until warm."""

    nodes: int
    samples_per_s: tuple[float, ...]
    limit: str
    processors: dict[str, int]
    use: Use = "training"
    startup_s: float | None = None
    took_s: float = 0.0

    @property
    def rate_per_s(self) -> float:
        return fmean(self.samples_per_s)

    @property
    def sd_per_s(self) -> float:
        return stdev(self.samples_per_s) if len(self.samples_per_s) > 1 else 0.0


@dataclass(slots=True)
class MstTrialFile:
    """Log of the trials of one application, one line each, with the conditions of the measurement."""

    path: Path
    conditions: dict[str, object]

    def read(self) -> list[MstTrial]:
        """The trials under the same conditions; the last one of a size counts."""
        found: dict[int, MstTrial] = {}
        for line in self.path.read_text("utf-8").splitlines() if self.path.exists() else ():
            try:
                told = json.loads(line)
                same = told["conditions"] == self.conditions
                trial = MstTrial(**{**told["trial"], "samples_per_s": tuple(told["trial"]["samples_per_s"])})
            except (ValueError, KeyError, TypeError):
                continue  # incomplete line of a killed run
            if same:
                found[trial.nodes] = trial
        return list(found.values())

    def add(self, trial: MstTrial) -> None:
        append_line(self.path, json.dumps({"conditions": self.conditions, "trial": asdict(trial)}), MOST_BYTES)
