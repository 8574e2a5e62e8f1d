"""Paths of all files of a pipeline, which are in one folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Layout:
    """The paths under a pipeline's folder."""

    folder: Path

    @property
    def description(self) -> Path:
        return self.folder / "pipeline.json"

    @property
    def plan(self) -> Path:
        return self.folder / "plan.json"

    @property
    def decisions(self) -> Path:
        return self.folder / "decisions.jsonl"

    @property
    def ticks(self) -> Path:
        return self.folder / "ticks.jsonl"

    @property
    def stages(self) -> Path:
        """Measurements of the stages of a real-time query, second by second; written by the driver."""
        return self.folder / "stages.jsonl"

    @property
    def said(self) -> Path:
        """Messages of the driver of an attached application: faults, and what it does not move."""
        return self.folder / "said.jsonl"

    @property
    def fleet(self) -> Path:
        return self.folder / "fleet.jsonl"

    @property
    def fleet_seen(self) -> Path:
        """Existing executors and nodes, and what was requested; written by the process that starts them."""
        return self.folder / "fleet.json"

    @property
    def warming(self) -> Path:
        """Where new executors write while they warm up; empty otherwise."""
        return self.folder / "warming"

    @property
    def nodes(self) -> Path:
        """How busy executors and nodes are; written by the driver."""
        return self.folder / "nodes.json"

    @property
    def control(self) -> Path:
        """The policy and the promise; written by the controller when it starts."""
        return self.folder / "control.json"

    @property
    def what_if(self) -> Path:
        """Planned allocations for other loads."""
        return self.folder / "what_if.json"

    @property
    def outcome(self) -> Path:
        """Results of a run; written when it ends."""
        return self.folder / "outcome.json"

    @property
    def failures(self) -> Path:
        """Operators that fail now, or have stopped; written by the driver."""
        return self.folder / "failures.json"

    @property
    def controller_log(self) -> Path:
        return self.folder / "controller.log"

    @property
    def hold(self) -> Path:
        """While this file exists no batch starts."""
        return self.folder / "hold"

    @property
    def lock(self) -> Path:
        return self.folder / "lock"

    @property
    def spark_writes(self) -> tuple[Path, ...]:
        """The folders below which Spark itself writes: created beforehand, closed to other users."""
        return (self.folder / "edges", self.folder / "operators")

    def edge(self, stream: str) -> Path:
        return self.folder / "edges" / stream

    def checkpoint(self, group: str) -> Path:
        return self.folder / "operators" / group / "checkpoint"

    def regroup(self, group: str) -> Path:
        """Exists while the number of an operator's key groups changes, until a batch is committed with the new one."""
        return self.folder / "operators" / group / "regroup.json"

    def hot_key(self, group: str) -> Path:
        """Exists while one key of an operator has far more rows than the others; written by the driver."""
        return self.folder / "operators" / group / "hot_key.json"

    def batches(self, group: str) -> Path:
        return self.folder / "operators" / group / "batches.jsonl"

    def source(self, group: str) -> Path:
        """End offsets and lag of the topics that an operator reads, over time; written by the driver."""
        return self.folder / "operators" / group / "source.jsonl"
