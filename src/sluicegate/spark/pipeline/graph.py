"""The graph of a running pipeline: groups of operators and the edges between them, as the control loop sees it.

The description is written to the pipeline's folder, so that the controller needs no user code, and so that a folder of
another pipeline is refused before anything is changed.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sluicegate.domain import SINK, SOURCE, Edge, Operator, Topology
from sluicegate.runlog.files import read_if_there
from sluicegate.runlog.layout import Layout
from sluicegate.spark.edges.seal import opened, sealed
from sluicegate.spark.edges.spoiled import EdgeSpoiled
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.fusion import COSTS, Group, groups_of

_GUESSED_PER_S = 1000.0
"""Assumed rows/s of one processor until the first batches are measured."""
MICRO_BATCH, REAL_TIME = "micro-batch", "real-time"
_IN_ITS_FOLDER = re.compile(r"[A-Za-z][A-Za-z0-9_.+-]{0,254}")
"""Names of streams and of fused operators: declared names joined by dots or plus signs."""


@dataclass(frozen=True, slots=True)
class Node:
    """One query: what it reads and writes, by edge name. ``terminal`` ones write what leaves the pipeline.

    ``calls_write``: a sink's ``write`` is called with its batches, before they are published.
    """

    name: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    stateful: bool
    key_groups: int
    terminal: bool
    source: str | None
    calls_write: bool = False


@dataclass(frozen=True, slots=True)
class RunningGraph:
    """What the controller needs to know of a pipeline.

    ``kept`` are the streams with a sink, and dead letters; ``keep_s`` is how long their rows stay, if not forever. In
    real-time ``mode`` all nodes are stages of one query.
    """

    name: str
    sources: tuple[str, ...]
    nodes: tuple[Node, ...]
    kept: tuple[str, ...]
    keep_s: Mapping[str, float] = field(default_factory=dict)
    mode: str = MICRO_BATCH

    @classmethod
    def of(cls, pipeline: Pipeline, groups: tuple[Group, ...]) -> RunningGraph:
        sunk = tuple(dict.fromkeys(sink.stream for sink in pipeline.sinks.values()))
        dead = (step.dead_letters for step in pipeline.steps.values() if step.dead_letters is not None)
        kept = tuple(dict.fromkeys((*sunk, *dead)))
        longest = {stream: max(s.keep_s for s in pipeline.sinks.values() if s.stream == stream) for stream in sunk}
        keep_s = {stream: seconds for stream, seconds in longest.items() if math.isfinite(seconds)}
        nodes = tuple(_node(pipeline, group, kept) for group in groups)
        fed = tuple(n for n, s in pipeline.sources.items() if s.stream is None)
        return cls(pipeline.name, fed, nodes, kept, keep_s)

    def with_key_groups(self, counts: Mapping[str, int]) -> RunningGraph:
        """The same graph with the current numbers of key groups."""
        nodes = tuple(replace(node, key_groups=counts.get(node.name, node.key_groups)) for node in self.nodes)
        return replace(self, nodes=nodes)

    def node(self, name: str) -> Node:
        return next(node for node in self.nodes if node.name == name)

    @property
    def streams(self) -> tuple[str, ...]:
        """All streams that have an edge."""
        return (*self.sources, *(stream for node in self.nodes for stream in node.writes))

    def readers(self, stream: str) -> tuple[str, ...]:
        return tuple(node.name for node in self.nodes if stream in node.reads)

    @property
    def doors(self) -> tuple[str, ...]:
        """The operators that read from outside the pipeline."""
        return tuple(node.name for node in self.nodes if node.source or set(node.reads) & set(self.sources))

    def to_json(self) -> str:
        nodes = [{slot: getattr(node, slot) for slot in Node.__slots__} for node in self.nodes]
        document = {
            "name": self.name,
            "sources": self.sources,
            "kept": self.kept,
            "keep_s": dict(self.keep_s),
            "nodes": nodes,
        } | ({"mode": self.mode} if self.mode != MICRO_BATCH else {})
        return sealed(json.dumps(document, indent=1))

    @classmethod
    def from_json(cls, text: str) -> RunningGraph:
        """Parse a description; ``ValueError`` if it is damaged."""
        read, _ = opened(text)
        try:
            nodes = tuple(_node_from(entry) for entry in read["nodes"])
            keep_s = {str(stream): float(seconds) for stream, seconds in read.get("keep_s", {}).items()}
            mode = str(read.get("mode", MICRO_BATCH))
            graph = cls(str(read["name"]), tuple(read["sources"]), nodes, tuple(read["kept"]), keep_s, mode)
        except (KeyError, TypeError, AttributeError) as problem:
            raise ValueError("describes no pipeline") from problem
        graph._check_names()
        return graph

    def _check_names(self) -> None:
        """Refuse names that lead out of the folder: who repairs a folder that was given to him deletes by them."""
        named = [*self.sources, *self.kept]
        named += [name for node in self.nodes for name in (node.name, *node.reads, *node.writes)]
        for name in named:
            if not isinstance(name, str) or not _IN_ITS_FOLDER.fullmatch(name):
                raise ValueError(f"names {str(name)[:120]!r}, which is no operator and no stream")

    def topology(self) -> Topology:
        """The topology that the loop plans for; rates and costs are guesses until batches are measured.

        Loop edges start with selectivity 0 until arrivals are measured: their share is unknown, and 1 would never end.
        """
        costs = None if self.mode == REAL_TIME else COSTS
        operators = tuple(Operator(n.name, _GUESSED_PER_S, stateful=n.stateful, batch=costs) for n in self.nodes)
        edges: dict[tuple[str, str], Edge] = {}
        for node in self.nodes:
            for origin in self._origins(node):
                edges[origin, node.name] = Edge(origin, node.name)
            if node.terminal:
                edges[node.name, SINK] = Edge(node.name, SINK)
        guessed = Topology(self.name, operators, tuple(edges.values()))
        back = set(guessed.edges_back)
        return replace(guessed, edges=tuple(replace(e, selectivity=0.0) if e in back else e for e in guessed.edges))

    def _origins(self, node: Node) -> list[str]:
        writers = {stream: other.name for other in self.nodes for stream in other.writes}
        named = [f"{SOURCE}:{s}" if s in self.sources else writers[s] for s in node.reads]
        return named if node.source is None else [f"{SOURCE}:{node.source}"]


def read_graph(layout: Layout) -> RunningGraph | None:
    """The pipeline that a folder describes; ``None`` if there is no description."""
    try:
        text = read_if_there(layout.description)
        return None if text is None else RunningGraph.from_json(text)
    except ValueError as problem:
        what = "is no text" if isinstance(problem, UnicodeError) else str(problem)
        raise EdgeSpoiled(
            f"{layout.description} {what}: restore it from a backup, or, if the pipeline is the same as before, delete "
            "it: it is written anew at the start"
        ) from problem


def fused(pipeline: Pipeline, fuse: bool) -> tuple[Group, ...]:
    """Check a pipeline and group its operators into queries."""
    pipeline.check()
    return groups_of(pipeline, fuse)


def _node(pipeline: Pipeline, group: Group, kept: tuple[str, ...]) -> Node:
    reads = tuple(dict.fromkeys(pipeline.closed.get(name, name) for name in group.first.inputs))
    return Node(
        name=group.name,
        reads=reads,
        writes=group.last.streams,
        stateful=group.stateful,
        key_groups=group.key_groups,
        terminal=any(stream in kept and stream != group.last.dead_letters for stream in group.last.streams),
        source=group.first.source,
        calls_write=any(sink.write and sink.stream in group.last.streams for sink in pipeline.sinks.values()),
    )


def _node_from(entry: dict[str, Any]) -> Node:
    return Node(
        name=str(entry["name"]),
        reads=tuple(entry["reads"]),
        writes=tuple(entry["writes"]),
        stateful=bool(entry["stateful"]),
        key_groups=int(entry["key_groups"]),
        terminal=bool(entry["terminal"]),
        source=entry["source"],
        calls_write=bool(entry.get("calls_write", entry["terminal"])),  # older versions did not say
    )
