"""What is checked before a pipeline starts in a folder: that all in it belongs together."""

from __future__ import annotations

import math

from sluicegate.errors import BadInput
from sluicegate.runlog.layout import Layout
from sluicegate.spark.edges.chain import check_reader, check_writer
from sluicegate.spark.edges.offsets import check_checkpoint_files, committed, last_batch, last_committed
from sluicegate.spark.pipeline.graph import RunningGraph, read_graph
from sluicegate.spark.pipeline.queries import Prepared


def check_same(layout: Layout, graph: RunningGraph) -> None:
    """A folder goes on with the pipeline it began with."""
    known = read_graph(layout)
    if known is None:
        return
    if known.name != graph.name:
        raise BadInput(f"{layout.folder} belongs to pipeline {known.name!r}, not {graph.name!r}: choose another folder")
    shapes = [{(n.name, n.reads, n.writes, n.stateful, n.key_groups) for n in g.nodes} for g in (known, graph)]
    if shapes[0] != shapes[1]:
        changed = sorted({one[0] for one in shapes[0] ^ shapes[1]})
        raise BadInput(
            f"the operators {', '.join(changed)} are joined otherwise than in {layout.folder}: code may change between "
            "two runs, the graph, key groups and fusion may not; start in a new folder"
        )
    if set(known.kept) != set(graph.kept):
        changed = sorted(set(known.kept) ^ set(graph.kept))
        raise BadInput(
            f"the sinks of {', '.join(changed)} changed: what {layout.folder} has of them would be deleted, or is not "
            "whole; give the same sinks, or start in a new folder"
        )


def check_checkpoint(one: Prepared, layout: Layout) -> None:
    """Spark's checkpoint and the edges must tell the same story, or rows would be lost or doubled."""
    checkpoint = one.writer.checkpoint
    check_checkpoint_files(checkpoint)
    done, planned, finished = committed(checkpoint), last_batch(checkpoint), last_committed(checkpoint)
    for edge in one.writer.writes.values():
        if planned is not None and planned != finished:
            edge.withdraw(planned)
        check_writer(edge, one.group.name, finished)
    for stream, edge in one.writer.reads.items():
        check_reader(edge, one.group.name, done.get(stream, 0))
        if not edge.serves(done.get(stream, 0)):
            raise BadInput(
                f"operator {one.group.name!r} has read {stream!r} up to manifest {done.get(stream, 0)}, and the edge "
                f"does not go on there: restore both in {layout.folder}, or start in a new folder"
            )
    one.writer.tidy()
    for edge in one.writer.writes.values():
        newest = edge.newest()
        seen, asked = newest.number if newest else -1, planned if planned is not None else -1
        if not asked - 1 <= seen <= asked:
            raise BadInput(
                f"operator {one.group.name!r}: its checkpoint is at batch {asked}, its output at {seen}: they do not "
                f"belong together; restore both in {layout.folder}, or start in a new folder"
            )


def check_processors(graph: RunningGraph, name: str, k: int) -> None:
    """k of an operator that is there, within its key groups."""
    node = next((node for node in graph.nodes if node.name == name), None)
    if node is None:
        raise BadInput(f"processors for {name!r}: there is {', '.join(node.name for node in graph.nodes)}")
    if not isinstance(k, int) or k < 1 or (node.stateful and k > node.key_groups):
        most = f" and at most its {node.key_groups} key groups" if node.stateful else ""
        raise BadInput(f"processors of {name!r} is {k}: give at least 1{most}")


def check_pace(graph: RunningGraph, name: str, pace_s: float) -> None:
    """A pace of an operator that is there."""
    if name not in {node.name for node in graph.nodes}:
        raise BadInput(f"pace of {name!r}: there is {', '.join(node.name for node in graph.nodes)}")
    if not isinstance(pace_s, int | float) or not 0 <= pace_s < math.inf:
        raise BadInput(f"pace of {name!r} is {pace_s}: give seconds, 0 or more")
