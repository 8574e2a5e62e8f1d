"""Checks that an edge is complete, against the checkpoints of its writer and readers. Spark is not needed.

Each raises ``EdgeSpoiled`` with one line for the first fault it finds.
"""

from __future__ import annotations

from sluicegate.spark.edges.edge import Edge
from sluicegate.spark.edges.spoiled import manifest_spoiled


def check_writer(edge: Edge, writer: str, finished: int | None) -> None:
    """Check that everything ``writer`` published exists; ``finished`` is its last committed batch."""
    manifests = edge.whole()
    newest = manifests[-1].number if manifests else -1
    if finished is not None and newest < finished:
        raise manifest_spoiled(edge.folder, finished, f"is missing, and operator {writer!r} has committed its batch")


def check_reader(edge: Edge, reader: str, first: int) -> None:
    """Check that everything ``reader`` has yet to take, from manifest ``first`` on, exists."""
    manifests = edge.whole()
    newest = manifests[-1].number if manifests else -1
    if first > newest + 1:
        raise manifest_spoiled(edge.folder, first - 1, f"is missing, and operator {reader!r} has read it")
