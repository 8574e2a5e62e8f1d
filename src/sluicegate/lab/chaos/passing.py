"""When a pipeline has come back: every row that was on a source at some moment has been through every operator."""

from __future__ import annotations

from sluicegate.errors import SluicegateError
from sluicegate.runlog.layout import Layout
from sluicegate.spark.edges.folder import FolderEdge
from sluicegate.spark.edges.offsets import committed
from sluicegate.spark.pipeline.graph import Node, RunningGraph


class Passing:
    """Of the rows that are on the sources when it is made. Asks files alone: the driver may be dead meanwhile."""

    def __init__(self, layout: Layout, graph: RunningGraph) -> None:
        self._layout = layout
        self._todo = in_order(graph)
        self._behind = {s: self._end(s) for s in graph.sources}
        """By edge: one past the last manifest that has to be taken, as soon as that is known."""

    def done(self) -> bool:
        """Whether all of them have come out; operators in the order of the rows' way."""
        try:
            while self._todo and self._taken(self._todo[0]):
                node = self._todo.pop(0)
                self._behind |= {stream: self._end(stream) for stream in node.writes}
        except (SluicegateError, OSError, ValueError):
            return False  # a file is spoiled, or was deleted while it was looked for
        return not self._todo

    def _taken(self, node: Node) -> bool:
        """A loop's edge is known only once its own writer is through: it is not waited for."""
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
    """Every operator after those whose rows it reads; where a loop forbids that, as they were declared."""
    known, order, rest = set(graph.sources), list[Node](), list(graph.nodes)
    while rest:
        node = next((n for n in rest if set(n.reads) <= known), rest[0])
        rest.remove(node)
        order.append(node)
        known |= set(node.writes)
    return order
