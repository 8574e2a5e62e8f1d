"""Small files written so that a reader sees the old one or the new one, never half of one, whatever crashes."""

from __future__ import annotations

import os
import uuid
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Write beside, flush to the disk, then rename over: readers and crashes see all of it or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    try:
        with draft.open("w", encoding="utf-8") as file:
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
