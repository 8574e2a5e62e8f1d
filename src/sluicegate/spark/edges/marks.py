"""Two small records beside the manifests of an edge: the newest one published, and the oldest one that is not deleted.

Manifests alone cannot show that the newest of them is gone, nor whether an old one was deleted by us or by somebody
else. Each record is overwritten in place, after a publication and before a deletion, without an fsync: a record that a
power failure lost, or that is torn, is ignored, and the manifests alone count.
"""

from __future__ import annotations

import contextlib
import os
import zlib
from pathlib import Path


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
    """The number; ``None`` if the record is missing or damaged."""
    with contextlib.suppress(OSError, ValueError):
        digits, check = path.read_text(encoding="ascii").split()
        if int(check, 16) == zlib.crc32(digits.encode()):
            return int(digits)
    return None
