"""Folders and files for their owner alone; small files that a reader sees old or new, never half, whatever crashes."""

from __future__ import annotations

import os
import uuid
from pathlib import Path


def owner_only_folder(path: Path) -> None:
    """Make a folder and the parents it lacks, closed to other users (0700); what is there already keeps its rights."""
    if path.is_dir():
        return
    if path != path.parent:
        owner_only_folder(path.parent)
    path.mkdir(mode=0o700, exist_ok=True)


def owner_only_file(path: Path) -> Path:
    """Make an empty file that other users cannot read (0600), unless there is one; the path, to open it by."""
    path.touch(mode=0o600)
    return path


def write_whole(path: Path, text: str) -> None:
    """Write beside, flush to the disk, then rename over: readers and crashes see all of it or nothing."""
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


def read_if_there(path: Path) -> str | None:
    """The text, or ``None`` where there is no such file (it may go between asking and reading)."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
