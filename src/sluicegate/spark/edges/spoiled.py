"""What is said of a file that is not as it was written: whose it is, what is wrong with it, how to restore it.

The jar has an exception of the same name, with the same words, for what the executors find.
"""

from __future__ import annotations

from pathlib import Path

from sluicegate.errors import BadInput


class EdgeSpoiled(BadInput):
    """A file that is needed is missing or was changed: no try can help, only restoring it. Its text is one line."""


def manifest_spoiled(edge: Path, number: int, what: str) -> EdgeSpoiled:
    """``what`` follows "manifest 7"."""
    name = f"manifests/{number:012d}.json"
    return EdgeSpoiled(
        f"edge {edge.name!r}: manifest {number} {what}: restore {name} from a backup of {edge}, or start in a new "
        "folder"
    )


def data_spoiled(edge: Path, number: int, path: str, what: str) -> EdgeSpoiled:
    """``what`` follows the file's name."""
    return EdgeSpoiled(
        f"edge {edge.name!r}, manifest {number}: {path} {what}: restore it from a backup of {edge}, or start in a new "
        "folder"
    )


def file_spoiled(whose: str, path: Path, what: str) -> EdgeSpoiled:
    """Of any other file; ``whose`` is what it belongs to, ``what`` follows its path."""
    return EdgeSpoiled(f"{whose}: {path} {what}: restore it from a backup, or start in a new folder")
