"""Errors for files that are missing or were changed: what they belong to, what is wrong, how to restore them.

The jar has an exception of the same name and wording for what the executors find.
"""

from __future__ import annotations

from pathlib import Path

from sluicegate.errors import BadInput


class EdgeSpoiled(BadInput):
    """A required file is missing or was changed: a retry cannot help, only restoring it. Its text is one line."""


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
    """The error for any other file; ``whose`` is what it belongs to, ``what`` follows its path."""
    return EdgeSpoiled(f"{whose}: {path} {what}: restore it from a backup, or start in a new folder")
