"""Finds out whether rows are still in flight in a running pipeline: on an edge, and in no committed batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sluicegate.runlog.layout import Layout
from sluicegate.spark.edges.folder import FolderEdge
from sluicegate.spark.edges.offsets import between_batches, committed, last_batch, only_timers
from sluicegate.spark.pipeline.queries import Prepared
from sluicegate.spark.pipeline.regroup import Regrouping


@dataclass(slots=True)
class InFlight:
    """The in-flight rows of the operators in ``prepared``; ``sources`` are the streams that programs feed."""

    layout: Layout
    sources: tuple[str, ...]
    prepared: Mapping[str, Prepared]
    regrouping: Regrouping
    closed: frozenset[str] = frozenset()
    """The sources that are read no more: what waits on their edges does not count."""

    def close_sources(self) -> None:
        """Read no more from the source edges that programs feed."""
        self.closed = frozenset(self.sources)
        for planner in (planner for one in self.prepared.values() for planner in one.planners):
            planner.closed = planner.edge.folder.name in self.closed

    def none(self) -> bool:
        """Whether every row on an edge is in a committed batch; timers may still be pending."""
        return all(self._caught_up(name) for name in self.prepared)

    def batches(self) -> list[int | None]:
        """Changes whenever a batch starts, except batches that only check which timers are due."""
        checkpoints = [one.writer.checkpoint for one in self.prepared.values()]
        return [None if only_timers(checkpoint) else last_batch(checkpoint) for checkpoint in checkpoints]

    def fed(self) -> dict[str, int]:
        """The number of the newest table of each source."""
        edges = {source: FolderEdge(self.layout.edge(source)) for source in self.sources}
        return {source: max(edge.numbers(), default=-1) for source, edge in edges.items()}

    def why(self, fed: Mapping[str, int]) -> str:
        """Why rows are still in flight; ``fed`` is the newest table of each source when the wait began."""
        more = [source for source, newest in self.fed().items() if newest > fed[source]]
        waits = "rows still wait: give more time or more processors"
        comes = f"{', '.join(more)} is still fed: stop feeding before you drain, or give more time or more processors"
        return comes if more else waits

    def _caught_up(self, name: str) -> bool:
        if name in self.regrouping.moving:
            return False
        writer = self.prepared[name].writer
        busy = not between_batches(writer.checkpoint) or writer.another_is_due()
        if busy and not only_timers(writer.checkpoint):
            return False
        done = committed(writer.checkpoint)
        reads = {stream: edge for stream, edge in writer.reads.items() if stream not in self.closed}
        return not any(m.matters for stream, edge in reads.items() for m in edge.since(done.get(stream, 0)))
