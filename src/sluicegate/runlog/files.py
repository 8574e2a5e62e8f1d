"""Creates folders and files that only their owner can read, and replaces small files atomically."""

from __future__ import annotations

import os
import uuid
from pathlib import Path


def owner_only_folder(path: Path) -> None:
    """Create a folder and its missing parents, closed to other users (0700); existing ones keep their mode."""
    if path.is_dir():
        return
    if path != path.parent:
        owner_only_folder(path.parent)
    path.mkdir(mode=0o700, exist_ok=True)


def owner_only_file(path: Path) -> Path:
    """Create an empty file that other users cannot read (0600), unless it exists; returns the path."""
    path.touch(mode=0o600)
    return path


def write_whole(path: Path, text: str) -> None:
    """Write a draft beside the file, fsync it, then rename: readers and crashes see all of the new text or none."""
    owner_only_folder(path.parent)
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    try:
        with owner_only_file(draft).open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def read_if_there(path: Path, errors: str = "strict") -> str | None:
    """The text, or ``None`` if there is no such file (it may vanish between a check and the read).

    With ``errors`` "replace", for a caller to whom a spoiled file says nothing, bytes that are no text are replaced.
    """
    try:
        with open(path, encoding="utf-8", errors=errors, opener=_at_once) as file:
            return file.read()
    except FileNotFoundError:
        return None


def _at_once(path: str, flags: int) -> int:
    """Open without waiting: a pipe in place of a file reads as empty, where it would keep the reader for ever."""
    return os.open(path, flags | os.O_NONBLOCK)


def numbered(folder: Path) -> list[int]:
    """The numbers of the files ``NUMBER.json`` in a folder, in order; none if there is no such folder.

    Any other failure is raised: ``Path.glob`` may pass over a folder that cannot be listed at the moment, as if it were
    empty, and what the files in it name would be deleted as left over.
    """
    try:
        names = [path.name for path in folder.iterdir()]
    except FileNotFoundError:
        return []
    stems = (name.removesuffix(".json") for name in names if name.endswith(".json"))
    return sorted(int(stem) for stem in stems if stem.isdecimal())
