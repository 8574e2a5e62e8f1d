"""Verifies a pipeline's folder: edges for completeness, checkpoints against edges, state against commits.

Everything a resumed pipeline relies on is checked, and every fault is one line; Spark is not needed. With ``repair``,
what can be restored exactly is repaired: records that only repeat what manifests say, a description that the next start
rewrites, leftovers of an interrupted batch. The rest needs a backup, and the fault says so.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from sluicegate.errors import BadInput, SluicegateError
from sluicegate.runlog.layout import Layout
from sluicegate.runlog.lock import kept_free
from sluicegate.spark.edges.chain import check_reader, check_same_run, check_writer
from sluicegate.spark.edges.file_sums import check_file
from sluicegate.spark.edges.folder import FolderEdge
from sluicegate.spark.edges.offsets import (
    check_checkpoint_files,
    committed,
    is_torn,
    last_batch,
    last_committed,
    state_partitions,
    strays,
)
from sluicegate.spark.edges.seal import opened
from sluicegate.spark.edges.spoiled import file_spoiled
from sluicegate.spark.pipeline.commit_records import CommitRecords
from sluicegate.spark.pipeline.graph import Node, RunningGraph, read_graph
from sluicegate.spark.pipeline.regroup import resumes_from, settle_regroup

Progress = Callable[[float], None]
_NO_STORES = ("SSTs", "logs", "_metadata")


@dataclass(frozen=True, slots=True)
class Found:
    """What was checked, and the faults found, one line each."""

    edges: int
    manifests: int
    files: int
    operators: int
    faults: tuple[str, ...]
    repaired: tuple[str, ...] = ()

    @property
    def sound(self) -> bool:
        return not self.faults


def verify(folder: Path, repair: bool = False, progress: Progress = lambda share: None) -> Found:
    """Check the folder of a pipeline that is not running."""
    if not folder.is_dir():
        raise BadInput(f"no folder {folder}: give the folder of a pipeline")
    layout = Layout(folder.absolute())
    with kept_free(folder):
        repaired = tuple(_repaired(layout)) if repair else ()
    graph, faults = _described(layout)
    if graph is None:
        if repaired:
            faults = [f"{layout.description} has to be written before the rest can be checked: start the pipeline once"]
        return Found(0, 0, 0, 0, tuple(faults), repaired)
    streams = sorted(set(graph.streams))
    manifests = files = 0
    for number, stream in enumerate(streams):
        edge = FolderEdge(layout.edge(stream))
        try:
            _ = edge.schema_json
            found = edge.whole()
            manifests += len(found)
            for manifest in found:
                for file in manifest.files:
                    files += 1
                    faults += _fault(check_file, edge.folder, manifest.number, file)
        except SluicegateError as problem:
            faults.append(str(problem))
        except OSError as problem:
            faults.append(_unread(edge.folder, problem))
        progress((number + 1) / len(streams))
    for node in graph.nodes:
        faults += _operator(layout, node)
    return Found(len(streams), manifests, files, len(graph.nodes), tuple(dict.fromkeys(faults)), repaired)


def _described(layout: Layout) -> tuple[RunningGraph | None, list[str]]:
    try:
        graph = read_graph(layout)
    except SluicegateError as problem:
        return None, [str(problem)]
    except OSError as problem:
        return None, [_unread(layout.description, problem)]
    return graph, [] if graph else [f"{layout.description} is missing: is {layout.folder} the folder of a pipeline?"]


def _operator(layout: Layout, node: Node) -> list[str]:
    """Check the checkpoint of one operator against the edges it reads and writes, and against its state."""
    try:
        checkpoint, added = resumes_from(layout, node.name)
    except SluicegateError as problem:
        return [str(problem)]
    except OSError as problem:
        return [_unread(layout.regroup(node.name), problem)]
    faults = _fault(check_checkpoint_files, checkpoint)
    if faults:
        return faults
    faults += _records(layout, node)
    done, finished = committed(checkpoint), last_committed(checkpoint)
    published = finished - 1 if finished is not None and finished == added else finished
    for stream in node.writes:
        edge = FolderEdge(layout.edge(stream))
        wrong = _fault(check_writer, edge, node.name, published)
        if not wrong and added is None and not strays(checkpoint):  # else the next start brings the two together
            wrong = _fault(check_same_run, edge, node.name, last_batch(checkpoint))
        faults += wrong
    for stream in node.reads:
        faults += _fault(check_reader, FolderEdge(layout.edge(stream)), node.name, done.get(stream, 0))
    if node.stateful and finished is not None:
        try:
            faults += _state(node, checkpoint, finished)
        except OSError as problem:
            faults.append(_unread(checkpoint / "state", problem))
    return faults


def _records(layout: Layout, node: Node) -> list[str]:
    """Check the commit records of batches that may run again: the next start publishes the files that they name."""
    checkpoint = layout.checkpoint(node.name)
    finished, records = last_committed(checkpoint), CommitRecords(node.name, checkpoint)
    again = (number for number in records.numbers() if finished is None or number > finished)
    return [fault for number in again for fault in _fault(_check_record, node.name, records.path(number))]


def _check_record(operator: str, path: Path) -> None:
    try:
        opened(path.read_text(encoding="utf-8"))
    except ValueError as problem:
        what = "is no text" if isinstance(problem, UnicodeError) else str(problem)
        raise file_spoiled(f"operator {operator!r}", path, what) from problem


def _state(node: Node, checkpoint: Path, finished: int) -> list[str]:
    """Check that every store has a file of the last committed batch: a delta or a snapshot."""
    wanted = (f"{finished + 1}.", f"{finished + 1}_")
    faults = []
    for store in _stores(checkpoint):
        files = [path for path in store.iterdir() if path.is_file() and path.name.startswith(wanted)]
        if not files:
            faults.append(
                f"operator {node.name!r}: {store} has no state of batch {finished}, which is committed: restore "
                "it from a backup, or start in a new folder"
            )
        faults += [
            f"operator {node.name!r}: {path} is empty: restore it from a backup, or start in a new folder"
            for path in files
            if path.stat().st_size == 0
        ]
    if not faults and not any(_stores(checkpoint)):
        faults.append(f"operator {node.name!r} has committed batch {finished} and its state is missing in {checkpoint}")
    return faults


def _stores(checkpoint: Path) -> Iterator[Path]:
    """The folders that hold versions of one partition: ``state/OPERATOR/PARTITION`` or one store below.

    Spark leaves the folders of partitions that there are no longer, after their number was reduced.
    """
    state, number = checkpoint / "state", state_partitions(checkpoint)
    if not state.is_dir():
        return
    for operator in sorted(path for path in state.iterdir() if path.name.isdigit()):
        partitions = sorted(path for path in operator.iterdir() if path.name.isdigit())
        for partition in (path for path in partitions if number is None or int(path.name) < number):
            inside = [path for path in partition.iterdir() if path.is_dir() and path.name not in _NO_STORES]
            yield from inside or [partition]


def _fault(check: Callable[..., object], *given: object) -> list[str]:
    try:
        check(*given)
    except SluicegateError as problem:
        return [str(problem)]
    except OSError as problem:
        return [_unread(given[0], problem)]
    except ValueError as problem:
        return [f"{given[0]}: {problem}"]
    return []


def _unread(of: object, problem: OSError) -> str:
    """The line for a file that is there and cannot be read: a folder in its place, a loop of links, missing rights."""
    what = problem.strerror or str(problem)
    return f"{problem.filename or of} cannot be read ({what}): give it back its rights, or restore it from a backup"


def _repaired(layout: Layout) -> Iterator[str]:
    """Repair what manifests and checkpoints determine exactly; yields a line for each repair."""
    try:
        graph = read_graph(layout)
    except SluicegateError:
        layout.description.unlink()
        yield f"{layout.description} could not be read and is removed: the next start writes it anew"
        return
    except OSError:  # a folder in its place, or no rights: told as a fault
        return
    if graph is None:
        return
    if layout.hold.is_file():
        layout.hold.unlink()
        yield f"{layout.hold} is removed: no batch would have started while it was there"
    for node in graph.nodes:
        yield from _operator_repaired(layout, node)


def _operator_repaired(layout: Layout, node: Node) -> Iterator[str]:
    checkpoint = layout.checkpoint(node.name)
    deleted_from = (checkpoint, checkpoint / "offsets", checkpoint.parent / "commits")
    if not all(path.resolve().is_relative_to(layout.folder.resolve()) for path in deleted_from):
        return  # a link that leads out of the folder: nothing is deleted there
    if layout.regroup(node.name).exists() and not _fault(settle_regroup, layout, node.name, node.writes):
        yield f"operator {node.name!r}: a change of key groups that was interrupted is finished or undone"
    drafts = checkpoint.parent / "drafts"
    if drafts.is_dir() and not drafts.is_symlink() and any(drafts.iterdir()):
        shutil.rmtree(drafts, ignore_errors=True)
        yield f"{drafts} is removed: an interrupted batch left it"
    planned, finished = last_batch(checkpoint), last_committed(checkpoint)
    edges = [FolderEdge(layout.edge(stream)) for stream in node.writes]
    torn = planned is not None and planned != finished and is_torn(checkpoint, planned)
    recorded = planned is not None and CommitRecords(node.name, checkpoint).path(planned).exists()
    # a batch that has neither published nor recorded its files can be planned again, with the input available then;
    # not with a sink that writes: it may know the rows of that number already, and would leave out those that are new
    free = not recorded and not node.calls_write
    if torn and free and planned is not None and not any(edge.has(planned) for edge in edges):
        path = checkpoint / "offsets" / str(planned)
        before = path.read_bytes()
        path.unlink()
        if _fault(check_checkpoint_files, checkpoint):
            path.write_bytes(before)
        else:
            yield f"{path} was torn and is removed: batch {planned} had published nothing and is planned anew"
    for edge in edges:
        if planned is not None and planned != finished and not edge.has(planned):
            edge.withdraw(planned)
