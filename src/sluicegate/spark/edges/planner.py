"""What Spark asks about an edge while it plans a batch, answered from manifests and the plan in force.

The stream itself is a little Java (``spark/jvm``): it asks a planner of this kind, in the driver's own process, and
lets Spark's vectorised reader read the pieces of files that it names. k is looked up whenever a batch is planned, so
a change is in force at the next batch. With trigger 0 Spark asks for the latest offset all the time; answering
"nothing new" until the pace is due makes the pace a live lever. The answer is held back for up to ``wait_s`` while
nothing is there: that saves processor time and finds new rows within milliseconds.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from sluicegate.runlog.plan_file import OperatorPlan, PlanFile
from sluicegate.spark.edges.backlog import Backlog
from sluicegate.spark.edges.edge import Edge
from sluicegate.spark.edges.file_sums import check_file, check_size
from sluicegate.spark.edges.manifest import Manifest
from sluicegate.spark.edges.offsets import next_of, offset_of
from sluicegate.spark.edges.pace import Pace
from sluicegate.spark.edges.pieces import Piece, group_rows, piece_of, records_of
from sluicegate.spark.edges.shares import cut
from sluicegate.spark.edges.spoiled import EdgeSpoiled

_POLL_S = 0.005
_CHECK_S = 1.0
"""How often a reader that finds nothing new makes sure that nothing is missing; else it asks for one file a look."""
_MOST_EMPTY = 200
"""Manifests without rows that may wait for the next one with rows; more of them are taken by a batch of their own."""


@dataclass(slots=True)
class EdgePlanner:
    """One reader of one edge, under the names that ``sluicegate.EdgePlanner`` gives its methods in Java.

    While the file ``hold`` exists no batch starts: that is how a pipeline stops between two batches. ``ahead`` are the
    edges its operator writes to: while their readers are too far behind, no batch starts either.
    """

    name: str
    """Of its own among all planners of a Spark session."""
    edge: Edge
    operator: str
    plan: PlanFile
    hold: Path
    wait_s: float
    ahead: tuple[Backlog, ...] = ()
    pace: Pace = field(default_factory=Pace)
    """Of its operator."""
    closed: bool = False
    """Set at the end of a run: what waits at its edge waits for the next start."""
    paused: bool = False
    """While set, this reader alone starts no batch."""
    processors: int = 0
    """The k that the last batch was cut for."""
    task_rows: tuple[int, ...] = ()
    """And the rows of each of its tasks."""
    owes: Callable[[], bool] = field(default=lambda: False)
    """Whether Spark still runs a batch without rows for what the watermark has passed: it would not after a restart."""
    _at: int | None = None
    """Where its next batch begins, once it was asked."""
    _looked: int = 0
    _checked_s: float = -math.inf

    def __post_init__(self) -> None:
        self.pace.readers.append(self._rows_wait)

    class Java:
        """For py4j."""

        implements: ClassVar = ["sluicegate.EdgePlanner"]

    def latest(self, start: str) -> str:
        """Where the next batch ends, given where the last one did; the same place while nothing is due."""
        if not start:
            return self._offset(0)
        first = next_of(start)
        self._stands_at(first)
        if self.pace.ask(self.name):
            self.pace.opened = self._opens(time.monotonic() + self.wait_s)
        if not self.pace.opened or not self._rows_wait():
            return start
        wanted = self.plan.read().of(self.operator)
        self.pace.begin(wanted.pace_s)
        self._at = end = self._admit(first, wanted)
        return self._offset(end)

    def held(self) -> bool:
        """Whether no batch may start, not even one without rows, unless Spark owes it to the last one."""
        return self._holds() and not self.owes()

    def _holds(self) -> bool:
        return self.paused or self.hold.exists()

    def tasks(self, start: str, end: str) -> str:
        """The pieces of files that each task of a batch reads; ``whole`` where none is a part of a row group."""
        taken = self.edge.between(next_of(start), next_of(end))
        wanted = self.plan.read().of(self.operator)
        self.processors = max(wanted.processors, 1)
        pieces = self._pieces(taken, wanted)
        self.task_rows = tuple(sum(piece.take for piece in share) for share in pieces)
        return json.dumps(
            {
                "whole": all(piece.whole for share in pieces for piece in share),
                "tasks": [[piece.as_list() for piece in share] for share in pieces],
            }
        )

    def _pieces(self, taken: list[Manifest], wanted: OperatorPlan) -> list[list[Piece]]:
        """What each task reads. Footers that cannot be read were changed: then it is told which."""
        if self.edge.topic is not None:
            named = [(file.path, file.rows) for manifest in taken for file in manifest.files]
            return [[records_of(s) for s in share] for share in cut(named, wanted.processors, wanted.shares)]
        for manifest in taken:
            for file in manifest.files:
                check_size(self.edge.folder, manifest.number, file)
        files = {str(self.edge.folder / file.path): file for manifest in taken for file in manifest.files}
        rows = [(path, file.rows) for path, file in files.items()]
        try:
            shares = cut(rows, wanted.processors, wanted.shares, group_rows)
            return [[piece_of(s, files[s.path].rows, files[s.path].sums or "") for s in share] for share in shares]
        except (OSError, ValueError, IndexError) as problem:
            for manifest in taken:
                for file in manifest.files:
                    check_file(self.edge.folder, manifest.number, file)
            raise EdgeSpoiled(
                f"edge {self.edge.folder.name!r}: a data file cannot be read ({problem}): restore it from a backup of "
                f"{self.edge.folder}, or start in a new folder"
            ) from problem

    def _stands_at(self, number: int) -> None:
        """A batch that failed before Spark noted it begins anew: then what was looked at must be looked at again."""
        if self._at is not None and number < self._at:
            self._looked = number
        self._at = number

    def _opens(self, until_s: float) -> bool:
        """Waits until a batch may start, which is what it returns, or for as long as it may."""
        while True:
            wanted = self.plan.read().of(self.operator)
            due = self.pace.is_due(wanted.pace_s) and self.pace.rows_wait()
            if due and not self._holds() and self._followed(wanted):
                return True
            if time.monotonic() >= until_s:
                return False
            time.sleep(_POLL_S)

    def _followed(self, wanted: OperatorPlan) -> bool:
        """Whether those who read what this operator writes keep up well enough."""
        return all(backlog.rows() <= wanted.most_behind for backlog in self.ahead)

    def _rows_wait(self) -> bool:
        """Whether there is anything for a batch; as long as Spark has not said where it is, there may be.

        Without rows, and with the watermark where it was, there is nothing: else a loop would run for ever on the empty
        manifests it writes itself.
        """
        if self.closed:
            return False
        if self._at is None:
            return True
        self._looked = max(self._looked, self._at)
        while (found := self.edge.manifest(self._looked)) is not None:
            if found.matters:
                return True
            self._looked += 1
        self._check_end()
        return self._looked - self._at >= _MOST_EMPTY

    def _check_end(self) -> None:
        now = time.monotonic()
        if now >= self._checked_s + _CHECK_S:
            self._checked_s = now
            self.edge.check_end(self._looked)

    def _offset(self, number: int) -> str:
        return offset_of(self.edge.folder.name, number)

    def _admit(self, first: int, wanted: OperatorPlan) -> int:
        """One past the last manifest of this batch: at least one, then while they fit."""
        rows = 0
        for manifest in self.edge.since(first):
            rows += manifest.rows
            if rows > wanted.most_rows and manifest.number > first:
                return manifest.number
            last = manifest.number
        return last + 1
