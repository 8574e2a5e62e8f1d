"""Plans the batches that read an edge: answers Spark's requests from manifests and the plan in force.

The stream itself is a little Java (``spark/jvm``): it calls a planner of this kind in the driver's own process, and
Spark's vectorised reader reads the pieces of files that the planner names. k is read whenever a batch is planned, so
a change takes effect at the next batch. With trigger 0 Spark polls for the latest offset all the time; answering
"nothing new" until the pace is due lets the pace change while the query runs. While nothing is new the answer is
delayed by up to ``wait_s``: that saves processor time, and new rows are still found within milliseconds.
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
from sluicegate.spark.edges.edge import DurableEdge
from sluicegate.spark.edges.file_sums import check_file, check_size
from sluicegate.spark.edges.manifest import Manifest
from sluicegate.spark.edges.offsets import next_of, offset_of
from sluicegate.spark.edges.pace import Pace
from sluicegate.spark.edges.pieces import Piece, group_rows, piece_of, records_of
from sluicegate.spark.edges.shares import cut
from sluicegate.spark.edges.spoiled import EdgeSpoiled

_POLL_S = 0.005
_CHECK_S = 1.0
"""How often a reader without new rows checks that no manifest is missing; other polls test for one file."""
_MOST_EMPTY = 200
"""Empty manifests that may wait for the next one with rows; this many get a batch of their own."""
_MOST_FILES = 1_000
"""Files of one batch: Spark keeps a reader of about 150 KB for each until its task ends, whatever rows the file has."""


@dataclass(slots=True)
class EdgePlanner:
    """One reader of one edge; its methods implement the Java interface ``sluicegate.EdgePlanner``.

    While the file ``hold`` exists no batch starts: that is how a pipeline stops between two batches. ``ahead`` are the
    backlogs of the edges its operator writes to: while one is too large, no batch starts either.
    """

    name: str
    """Unique among all planners of a Spark session."""
    edge: DurableEdge
    operator: str
    plan: PlanFile
    hold: Path
    wait_s: float
    ahead: tuple[Backlog, ...] = ()
    pace: Pace = field(default_factory=Pace)
    """Shared by all readers of its operator."""
    closed: bool = False
    """Set at the end of a run: rows still on the edge wait for the next start."""
    paused: bool = False
    """While set, this reader alone starts no batch."""
    processors: int = 0
    """The k that the last batch was cut for."""
    task_rows: tuple[int, ...] = ()
    """The rows of each task of that batch."""
    owes: Callable[[], bool] = field(default=lambda: False)
    """Whether Spark still owes a batch without rows for what the watermark has passed; a restart would lose it."""
    _at: int | None = None
    """The manifest its next batch begins with; ``None`` until Spark has asked."""
    _looked: int = 0
    _checked_s: float = -math.inf

    def __post_init__(self) -> None:
        self.pace.readers.append(self._rows_wait)

    class Java:
        """For py4j."""

        implements: ClassVar = ["sluicegate.EdgePlanner"]

    def latest(self, start: str) -> str:
        """The end offset of the next batch, given that of the last one; the same offset while nothing is due."""
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
        """Whether no batch may start, not even one without rows, unless Spark still owes one (``owes``)."""
        return self._holds() and not self.owes()

    def _holds(self) -> bool:
        return self.paused or self.hold.exists()

    def tasks(self, start: str, end: str) -> str:
        """The pieces of files that each task of a batch reads, as JSON; ``whole``: none is a part of a row group."""
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
        """The pieces that each task reads. If a footer cannot be read, all files are checked to name the bad one."""
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
        """Set the position. It goes back if a batch failed before Spark logged it: then manifests are read again."""
        if self._at is not None and number < self._at:
            self._looked = number
        self._at = number

    def _opens(self, until_s: float) -> bool:
        """Poll until a batch may start, or until the deadline; returns whether it may."""
        while True:
            wanted = self.plan.read().of(self.operator)
            due = self.pace.is_due(wanted.pace_s) and self.pace.rows_wait()
            if due and not self._holds() and self._followed(wanted):
                return True
            if time.monotonic() >= until_s:
                return False
            time.sleep(_POLL_S)

    def _followed(self, wanted: OperatorPlan) -> bool:
        """Whether the readers of this operator's output keep up well enough."""
        return all(backlog.rows() <= wanted.most_behind for backlog in self.ahead)

    def _rows_wait(self) -> bool:
        """Whether there is anything for a batch; assumed until Spark has said where it is.

        Manifests without rows that leave the watermark where it was do not count: else a loop would run forever on the
        empty manifests it writes itself.
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
        return offset_of(self.edge.folder.name, number, self.operator)

    def _admit(self, first: int, wanted: OperatorPlan) -> int:
        """One past the last manifest of this batch: at least one, then as many as its rows and files may be."""
        rows = files = 0
        for manifest in self.edge.since(first):
            rows, files = rows + manifest.rows, files + len(manifest.files)
            if (rows > wanted.most_rows or files > _MOST_FILES) and manifest.number > first:
                return manifest.number
            last = manifest.number
        return last + 1
