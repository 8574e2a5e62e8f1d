"""Shows whether a manifest of an edge is missing: two marks beside the manifests, and checks against checkpoints.

The marks are the numbers of the newest manifest published and of the oldest one not deleted: manifests alone cannot
show that the newest of them is gone, nor whether an old one was deleted by us or by somebody else. A mark is
overwritten in place, after a publication and before a deletion, without an fsync: one that a power failure lost, or
that is torn, is ignored, and the manifests alone count.

The checks need no Spark. Each raises ``BadInput`` with one line for the first fault it finds, ``EdgeSpoiled`` where a
manifest is missing.
"""

from __future__ import annotations

import contextlib
import os
import zlib
from pathlib import Path

from sluicegate.errors import BadInput
from sluicegate.spark.edges.edge import DurableEdge
from sluicegate.spark.edges.spoiled import manifest_spoiled


def write_mark(path: Path, number: int) -> None:
    """Write the number in one write of constant length: readers see the old number or the new one."""
    digits = f"{number:012d}"
    text = f"{digits} {zlib.crc32(digits.encode()):08x}\n".encode()
    handle = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        os.write(handle, text)
        os.ftruncate(handle, len(text))  # removes any longer content
    finally:
        os.close(handle)


def read_mark(path: Path) -> int | None:
    """The number; ``None`` if the mark is missing or damaged."""
    with contextlib.suppress(OSError, ValueError):
        digits, check = path.read_text(encoding="ascii").split()
        if int(check, 16) == zlib.crc32(digits.encode()):
            return int(digits)
    return None


def check_writer(edge: DurableEdge, writer: str, finished: int | None) -> None:
    """Check that everything ``writer`` published exists; ``finished`` is its last committed batch."""
    manifests = edge.whole()
    newest = manifests[-1].number if manifests else -1
    if finished is not None and newest < finished:
        raise manifest_spoiled(edge.folder, finished, f"is missing, and operator {writer!r} has committed its batch")


def check_reader(edge: DurableEdge, reader: str, first: int) -> None:
    """Check that everything ``reader`` has yet to take, from manifest ``first`` on, exists."""
    manifests = edge.whole()
    newest = manifests[-1].number if manifests else -1
    if first > newest + 1:
        raise manifest_spoiled(edge.folder, first - 1, f"is missing, and operator {reader!r} has read it")
    if not edge.serves(first):
        raise BadInput(
            f"operator {reader!r} has read {edge.folder.name!r} up to manifest {first}, and the edge does not go on "
            f"there: restore both in {_run_of(edge)}, or start in a new folder"
        )


def check_same_run(edge: DurableEdge, writer: str, planned: int | None) -> None:
    """Check that ``writer`` goes on where its output ends; ``planned`` is the last batch of its checkpoint."""
    newest = edge.newest()
    seen, asked = newest.number if newest else -1, planned if planned is not None else -1
    if not asked - 1 <= seen <= asked:
        raise BadInput(
            f"operator {writer!r}: its checkpoint is at batch {asked}, its output at {seen}: they do not belong "
            f"together; restore both in {_run_of(edge)}, or start in a new folder"
        )


def _run_of(edge: DurableEdge) -> Path:
    """The folder of the pipeline that an edge is in."""
    return edge.folder.parents[1]
