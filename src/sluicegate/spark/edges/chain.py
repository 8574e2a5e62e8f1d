"""Whether an edge is whole: checks against those who write and read it, and of its data. No Spark is needed.

Each raises ``EdgeSpoiled`` with one line for the first fault it finds.
"""

from __future__ import annotations

from sluicegate.spark.edges.edge import Edge
from sluicegate.spark.edges.spoiled import manifest_spoiled


def check_writer(edge: Edge, writer: str, finished: int | None) -> None:
    """All that ``writer`` published is there; ``finished`` is the last batch it has committed."""
    manifests = edge.whole()
    newest = manifests[-1].number if manifests else -1
    if finished is not None and newest < finished:
        raise manifest_spoiled(edge.folder, finished, f"is missing, and operator {writer!r} has committed its batch")


def check_reader(edge: Edge, reader: str, first: int) -> None:
    """All that ``reader`` has yet to take, from manifest ``first`` on, is there."""
    manifests = edge.whole()
    newest = manifests[-1].number if manifests else -1
    if first > newest + 1:
        raise manifest_spoiled(edge.folder, first - 1, f"is missing, and operator {reader!r} has read it")
