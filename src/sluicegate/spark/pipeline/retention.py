"""Deletes rows that are not needed any more: those that every reader has committed, and those that sinks do not keep.

Three things delay the deletion of a manifest that a sink keeps no longer: a reader in the pipeline that has not
committed it; its writer's own batch, which Spark would rerun if it is not committed; and a grace period for queries
over the sink that began before its rows expired (``read_stream`` does not list expired rows). Manifests are deleted in
order, the newest always stays.

Rows expire by the wall clock, which may be stepped. A step forward counts only once it has lasted for as long as rows
are kept: a clock that is wrong for a while deletes nothing, also if it is wrong when the pipeline starts. So after a
pause rows are deleted as much later as it lasted, until the pipeline has run for that long. Rows published while the
clock was set back count as published no earlier than those before them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from sluicegate.runlog.layout import Layout
from sluicegate.spark.edges.folder import FolderEdge
from sluicegate.spark.edges.offsets import last_committed
from sluicegate.spark.pipeline.graph import RunningGraph

_MOST_GRACE_S = 600.0
"""Longest grace period: expired rows stay on disk as long again as they were kept, at most this long."""
_STEP_S = 1.0
"""A wall clock that gains more than this on the monotonic one between two looks was stepped."""


@dataclass(slots=True)
class WaryClock:
    """The wall clock, but a step forward counts only after ``hold_s``; a step back counts at once.

    >>> clock = WaryClock(hold_s=60.0)
    >>> [clock.at(wall_s, steady_s) for wall_s, steady_s in ((100.0, 0.0), (3710.0, 10.0), (120.0, 20.0), (95.0, 25.0))]
    [100.0, 110.0, 120.0, 95.0]
    """

    hold_s: float
    ahead_s: float = math.inf
    """How far the wall clock is believed to be ahead of the monotonic one."""
    _stepped_s: float | None = None
    """When, by the monotonic clock, a step forward was first seen."""

    def at(self, wall_s: float, steady_s: float) -> float:
        """The time that counts now; ``steady_s`` is by the monotonic clock."""
        ahead_s = wall_s - steady_s
        if ahead_s <= self.ahead_s + _STEP_S:
            self.ahead_s, self._stepped_s = ahead_s, None
        elif self._stepped_s is None:
            self._stepped_s = steady_s
        elif steady_s - self._stepped_s >= self.hold_s:
            self.ahead_s, self._stepped_s = ahead_s, None
        return steady_s + self.ahead_s


class Retention:
    """Deletes rows of the streams of a pipeline that are not kept forever."""

    def __init__(self, layout: Layout, graph: RunningGraph) -> None:
        self._layout, self._graph = layout, graph
        self._writers = {stream: node.name for node in graph.nodes for stream in node.writes}
        self._first: dict[str, int] = {}
        self._clocks: dict[str, WaryClock] = {}

    def clean(self, taken: Mapping[str, Mapping[str, int]], wall_s: float, steady_s: float) -> None:
        """Delete what is not needed any more.

        ``taken`` is, by operator and stream, the first manifest that no committed batch has read; ``steady_s`` is the
        time by the monotonic clock.
        """
        for stream in set(self._graph.streams) - set(self._graph.kept):
            read = [taken[name].get(stream, 0) for name in self._graph.readers(stream)]
            FolderEdge(self._layout.edge(stream)).clean(min(read, default=0))
        for stream, keep_s in self._graph.keep_s.items():
            edge, needed = FolderEdge(self._layout.edge(stream)), self._needed(stream, taken)
            if stream not in self._clocks:
                self._clocks[stream] = _clock(edge, keep_s, steady_s)
            now_s = self._clocks[stream].at(wall_s, steady_s)
            first = self._first.get(stream, next(iter(edge.numbers()), 0))
            # from where the last call ended: costs what is deleted, not what is kept
            too_old = self._too_old(edge, first, needed, now_s - _stay_s(keep_s))
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


def _clock(edge: FolderEdge, keep_s: float, steady_s: float) -> WaryClock:
    """A clock that begins when the newest rows were published: the time since then may be a step."""
    newest = edge.newest()
    return WaryClock(_stay_s(keep_s), math.inf if newest is None else newest.published_s - steady_s)


def _stay_s(keep_s: float) -> float:
    """How long rows that are kept for ``keep_s`` stay on disk."""
    return keep_s + min(keep_s, _MOST_GRACE_S)
