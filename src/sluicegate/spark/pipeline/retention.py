"""Deletes rows that sinks no longer keep: expired ones, and those that are only passed to ``write``.

Three things delay the deletion of a manifest: a reader in the pipeline that has not committed it; its writer's own
batch, which Spark would rerun if it is not committed; and a grace period for queries over the sink that began before
its rows expired (``read_stream`` does not list expired rows). Manifests are deleted in order, the newest always stays.
"""

from __future__ import annotations

from collections.abc import Mapping

from sluicegate.runlog.layout import Layout
from sluicegate.spark.edges.folder import FolderEdge
from sluicegate.spark.edges.offsets import last_committed
from sluicegate.spark.pipeline.graph import RunningGraph

_MOST_GRACE_S = 600.0
"""Longest grace period: expired rows stay on disk as long again as they were kept, at most this long."""


class Retention:
    """Deletes expired rows of the streams of a pipeline that are not kept forever."""

    def __init__(self, layout: Layout, graph: RunningGraph) -> None:
        self._layout, self._graph = layout, graph
        self._writers = {stream: node.name for node in graph.nodes for stream in node.writes}
        self._first: dict[str, int] = {}

    def clean(self, taken: Mapping[str, Mapping[str, int]], now_s: float) -> None:
        """Delete expired rows; ``taken``: by operator and stream, the first manifest that no committed batch read."""
        for stream, keep_s in self._graph.keep_s.items():
            edge, needed = FolderEdge(self._layout.edge(stream)), self._needed(stream, taken)
            first = self._first.get(stream, next(iter(edge.numbers()), 0))
            # from where the last call ended: costs what is deleted, not what is kept
            too_old = self._too_old(edge, first, needed, now_s - keep_s - min(keep_s, _MOST_GRACE_S))
            if too_old > first:
                edge.clean(too_old)
            self._first[stream] = too_old

    def _needed(self, stream: str, taken: Mapping[str, Mapping[str, int]]) -> int:
        """The first manifest that a reader, or a batch that may run again, still needs."""
        readers = [taken[name].get(stream, 0) for name in self._graph.readers(stream)]
        writer = self._writers.get(stream)
        done = last_committed(self._layout.checkpoint(writer)) if writer else None
        own = [] if writer is None else [0 if done is None else done + 1]
        return min([*readers, *own], default=0)

    @staticmethod
    def _too_old(edge: FolderEdge, first: int, needed: int, before_s: float) -> int:
        """The first manifest from ``first`` on that stays; the newest if all are expired."""
        stays = first
        for manifest in edge.since(first):
            stays = manifest.number
            if stays >= needed or manifest.published_s >= before_s:
                break
        return stays
