"""What is checked before a pipeline starts in a folder: that nobody runs there, and that all in it belongs together."""

from __future__ import annotations

import fcntl
from io import TextIOWrapper

from sluicegate.errors import BadInput, EnvironmentLacks
from sluicegate.runlog.files import owner_only_file, owner_only_folder, read_if_there
from sluicegate.runlog.layout import Layout
from sluicegate.spark.edges.offsets import committed, last_batch
from sluicegate.spark.pipeline.graph import RunningGraph
from sluicegate.spark.pipeline.queries import Prepared


def no_room(layout: Layout, problem: OSError) -> EnvironmentLacks:
    """What to say when the folder cannot be written."""
    told = problem.strerror or str(problem)
    return EnvironmentLacks(f"cannot write to {layout.folder}: {told}; make room, or choose another folder")


def locked(layout: Layout) -> TextIOWrapper:
    """One pipeline a folder; the system lets go of the lock however the process ends."""
    try:
        for folder in (layout.folder, *layout.spark_writes):
            owner_only_folder(folder)
        lock = owner_only_file(layout.lock).open("w", encoding="utf-8")
    except OSError as problem:
        raise no_room(layout, problem) from problem
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as problem:
        lock.close()
        raise BadInput(f"a pipeline runs in {layout.folder} already: stop it, or choose another folder") from problem
    return lock


def check_same(layout: Layout, graph: RunningGraph) -> None:
    """A folder goes on with the pipeline it began with."""
    text = read_if_there(layout.description)
    if text is None:
        return
    known = RunningGraph.from_json(text)
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
    done, planned = committed(one.writer.checkpoint), last_batch(one.writer.checkpoint)
    for stream, edge in one.writer.reads.items():
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
    if k < 1 or (node.stateful and k > node.key_groups):
        most = f" and at most its {node.key_groups} key groups" if node.stateful else ""
        raise BadInput(f"processors of {name!r} is {k}: give at least 1{most}")
