"""Checks before a pipeline starts in a folder: description, checkpoints, edges and settings must match."""

from __future__ import annotations

import logging
import math
import time
from typing import Literal, get_args

from sluicegate.errors import BadInput
from sluicegate.runlog.layout import Layout
from sluicegate.spark.edges.chain import check_reader, check_same_run, check_writer
from sluicegate.spark.edges.folder import FolderEdge
from sluicegate.spark.edges.offsets import check_checkpoint_files, committed, last_batch, last_committed, strays
from sluicegate.spark.pipeline.argument_checks import check_retry
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.graph import RunningGraph, read_graph
from sluicegate.spark.pipeline.queries import Prepared
from sluicegate.spark.pipeline.row_functions import is_dead_letters

LOG = logging.getLogger("sluicegate.pipeline")
WhenStopped = Literal["say", "raise"]


def check_stopping(pipeline: Pipeline, retry_for_s: float | None, when_stopped: str) -> None:
    """Refuse options about operators that fail which ``start`` does not know."""
    check_retry("pipeline", pipeline.name, retry_for_s)
    if when_stopped not in get_args(WhenStopped):
        raise BadInput(f"when_stopped is {when_stopped!r}: give one of {', '.join(get_args(WhenStopped))}")


def check_same(layout: Layout, graph: RunningGraph) -> None:
    """Refuse a folder of another pipeline, or one whose graph or sinks were different."""
    known = read_graph(layout)
    if known is None:
        _check_operators(layout, graph)
        return
    if known.name != graph.name:
        raise BadInput(f"{layout.folder} belongs to pipeline {known.name!r}, not {graph.name!r}: choose another folder")
    new = added_dead_letters(layout, graph)
    shapes = [
        {(n.name, n.reads, tuple(w for w in n.writes if w not in new), n.stateful, n.key_groups) for n in g.nodes}
        for g in (known, graph)
    ]
    if shapes[0] != shapes[1]:
        changed = sorted({one[0] for one in shapes[0] ^ shapes[1]})
        raise BadInput(
            f"the operators {', '.join(changed)} are joined otherwise than in {layout.folder}: code may change between "
            "two runs, the graph, key groups and fusion may not; start in a new folder"
        )
    # rows that were kept and are only to be written from now on would be deleted without having been written
    sinks = [{(stream, g.keep_s.get(stream) == 0) for stream in g.kept if stream not in new} for g in (known, graph)]
    if sinks[0] != sinks[1]:
        changed = sorted({stream for stream, _ in sinks[0] ^ sinks[1]})
        raise BadInput(
            f"the sinks of {', '.join(changed)} changed: what {layout.folder} has of them would be deleted, or is not "
            "whole; give the same sinks, or start in a new folder"
        )
    unwritten = {node.name for node in known.nodes if not node.calls_write and _has_run(layout, node.name)}
    late = sorted(node.name for node in graph.nodes if node.calls_write and node.name in unwritten)
    if late:
        raise BadInput(
            f"the sinks of {', '.join(late)} changed: rows that {layout.folder} has of them would never be given to "
            "`write`; give the same sinks, or start in a new folder"
        )


def _check_operators(layout: Layout, graph: RunningGraph) -> None:
    """Without a description: refuse a folder in which operators have run that this pipeline does not have."""
    there = layout.folder / "operators"
    known = {path.name for path in there.iterdir() if path.is_dir()} if there.is_dir() else set[str]()
    others = sorted(name for name in known - {node.name for node in graph.nodes} if _has_run(layout, name))
    if others:
        raise BadInput(
            f"{layout.description} is missing, and {', '.join(others)} ran there, which this pipeline does not have: "
            "give the same operators, restore it from a backup, or start in a new folder"
        )


def _has_run(layout: Layout, operator: str) -> bool:
    return last_batch(layout.checkpoint(operator)) is not None


def added_dead_letters(layout: Layout, graph: RunningGraph) -> set[str]:
    """Dead-letter streams that this pipeline has and the one described in the folder has not."""
    known = read_graph(layout)
    written = {stream for node in known.nodes for stream in node.writes} if known is not None else set[str]()
    dead = {stream for node in graph.nodes for stream in node.writes if is_dead_letters(node.name, stream)}
    return dead - written if known is not None else set()


def begin_dead_letters(one: Prepared, layout: Layout, added: set[str]) -> None:
    """Start a new dead-letter edge at the next batch of an operator that has run without it."""
    finished = last_committed(one.writer.checkpoint)
    stream = one.group.last.dead_letters
    if stream in added and finished is not None:
        FolderEdge(layout.edge(stream)).begin_after(finished, time.time())


def check_checkpoint(one: Prepared, layout: Layout) -> None:
    """Refuse a checkpoint that does not match its edges (rows would be lost or duplicated); then tidy its writer."""
    checkpoint = one.writer.checkpoint
    for path in strays(checkpoint):
        LOG.warning("sluicegate: operator %r: deleted %s, which another pipeline planned here", one.group.name, path)
        path.unlink(missing_ok=True)
    check_checkpoint_files(checkpoint)
    done, planned, finished = committed(checkpoint), last_batch(checkpoint), last_committed(checkpoint)
    for edge in one.writer.writes.values():
        if planned is not None and planned != finished:
            edge.withdraw(planned)
        check_writer(edge, one.group.name, finished)
    for stream, edge in one.writer.reads.items():
        check_reader(edge, one.group.name, done.get(stream, 0))
    for edge in one.writer.writes.values():
        check_same_run(edge, one.group.name, planned)
    one.writer.tidy()


def check_processors(graph: RunningGraph, name: str, k: int) -> None:
    """Refuse an unknown operator, and a k below 1 or above its key groups."""
    node = next((node for node in graph.nodes if node.name == name), None)
    if node is None:
        raise BadInput(f"processors for {name!r}: there is {', '.join(node.name for node in graph.nodes)}")
    if not isinstance(k, int) or k < 1 or (node.stateful and k > node.key_groups):
        most = f" and at most its {node.key_groups} key groups" if node.stateful else ""
        raise BadInput(f"processors of {name!r} is {k}: give at least 1{most}")


def check_key_groups(graph: RunningGraph, name: str, count: int) -> None:
    """Refuse an operator without state, and a number of key groups below 1."""
    stateful = [node.name for node in graph.nodes if node.stateful]
    if name not in stateful:
        raise BadInput(f"key groups of {name!r}: the operators with state are {', '.join(stateful) or 'none'}")
    if not isinstance(count, int) or count < 1:
        raise BadInput(f"key groups of {name!r} is {count}: give at least 1")


def check_pace(graph: RunningGraph, name: str, pace_s: float) -> None:
    """Refuse an unknown operator, and a pace that is negative or infinite."""
    if name not in {node.name for node in graph.nodes}:
        raise BadInput(f"pace of {name!r}: there is {', '.join(node.name for node in graph.nodes)}")
    if not isinstance(pace_s, int | float) or not 0 <= pace_s < math.inf:
        raise BadInput(f"pace of {name!r} is {pace_s}: give seconds, 0 or more")
