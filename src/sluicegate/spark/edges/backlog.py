"""Backlog of an edge: how many rows its readers are behind its writer. A writer that is too far ahead waits."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sluicegate.spark.edges.edge import DurableEdge
from sluicegate.spark.edges.manifest import Manifest
from sluicegate.spark.edges.offsets import committed

LATE = 2.0
"""A rate holds for this many times the time between two manifests or batches. At 1 a batch slightly later than the
one before counts as none. At double the end of a load is seen later."""


@dataclass(slots=True)
class Head:
    """Total rows that an edge has carried; a poll looks only for the next manifest."""

    edge: DurableEdge
    next: int = 0
    rows: int = 0
    published_s: float | None = None
    per_s: float | None = None
    """Rows/s from manifest to manifest, at the last poll that found one; ``None`` with fewer than two of them."""
    until_s: float = 0.0
    """How long that rate holds without another manifest."""

    def look(self) -> int:
        """Poll the edge; returns the rows added since the last poll."""
        before, published_s, first = self.rows, self.published_s, self.next
        if not self.edge.has_more(self.next):
            return 0
        if not self.edge.has(self.next) and (newest := self.edge.newest()) and newest.number >= self.next:
            self._take(newest)  # manifests not seen yet were deleted meanwhile
        for manifest in self.edge.present(self.next):
            self._take(manifest)
        fresh = self.rows - before
        # How many manifests fall between two polls is chance; the time between two manifests is not.
        apart_s = self.published_s - published_s if self.published_s is not None and published_s is not None else 0.0
        self.per_s = fresh / apart_s if apart_s > 0 else None
        self.until_s = (self.published_s or 0.0) + LATE * apart_s / max(self.next - first, 1)
        return fresh

    def rate_per_s(self, fresh: int, took_s: float, now_s: float) -> float:
        """Rows/s at the last poll, which found ``fresh`` rows ``took_s`` after the one before.

        Between two manifests the last rate holds: a writer with long batches would else count as idle in most polls.
        """
        if self.per_s is None or (not fresh and now_s > self.until_s):
            return fresh / took_s
        return self.per_s

    def _take(self, manifest: Manifest) -> None:
        self.next, self.rows, self.published_s = manifest.number + 1, manifest.rows_after, manifest.published_s

    def rows_before(self, number: int) -> int:
        """Rows carried before manifest ``number``."""
        found = self.edge.manifest(number)
        return found.rows_before if found else self.rows


class Backlog:
    """The rows on an edge that its slowest reader has not committed; ``checkpoints`` are the readers'."""

    def __init__(self, edge: DurableEdge, checkpoints: tuple[Path, ...]) -> None:
        self._head, self._checkpoints = Head(edge), checkpoints

    def rows(self) -> int:
        self._head.look()
        name = self._head.edge.folder.name
        taken = [committed(checkpoint).get(name, 0) for checkpoint in self._checkpoints]
        return max((self._head.rows - self._head.rows_before(number) for number in taken), default=0)
