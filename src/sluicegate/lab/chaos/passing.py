"""Tells when a pipeline has recovered: all rows present on its sources at some moment have passed every operator."""

from __future__ import annotations

from sluicegate.errors import SluicegateError
from sluicegate.runlog.layout import Layout
from sluicegate.spark.edges.folder import FolderEdge
from sluicegate.spark.edges.offsets import committed
from sluicegate.spark.pipeline.graph import Node, RunningGraph


class Passing:
    """Tracks the rows that are on the sources when it is created. It reads files only, since the driver may be down."""

    def __init__(self, layout: Layout, graph: RunningGraph) -> None:
        self._layout = layout
        self._todo = in_order(graph)
        self._behind = {s: self._end(s) for s in graph.sources}
        """By edge: one past the last manifest that must be consumed, once that is known."""

    def done(self) -> bool:
        """Whether all these rows have passed every operator, checked in topological order."""
        try:
            while self._todo and self._taken(self._todo[0]):
                node = self._todo.pop(0)
                self._behind |= {stream: self._end(stream) for stream in node.writes}
        except (SluicegateError, OSError, ValueError):
            return False  # a file is damaged, or was deleted during the check
        return not self._todo

    def _taken(self, node: Node) -> bool:
        """Whether the operator has committed the rows; a loop's edge is ignored until its writer is done."""
        taken = committed(self._layout.checkpoint(node.name))
        reads = [stream for stream in node.reads if stream in self._behind]
        return not any(
            manifest.matters
            for stream in reads
            for manifest in FolderEdge(self._layout.edge(stream)).present(taken.get(stream, 0))
            if manifest.number < self._behind[stream]
        )

    def _end(self, stream: str) -> int:
        return max(FolderEdge(self._layout.edge(stream)).numbers(), default=-1) + 1


def in_order(graph: RunningGraph) -> list[Node]:
    """Operators in topological order; where a loop prevents it, in the order of declaration."""
    known, order, rest = set(graph.sources), list[Node](), list(graph.nodes)
    while rest:
        node = next((n for n in rest if set(n.reads) <= known), rest[0])
        rest.remove(node)
        order.append(node)
        known |= set(node.writes)
    return order
