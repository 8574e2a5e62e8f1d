"""Checksums of data files: a CRC-32 for every block of a file, so that tasks which share it check what each reads.

Executors compute them as they finish a file and check them as they read it (``spark/jvm/EdgeSums.java``); this is the
same in Python, for feeds and for checks of a folder without Spark.
"""

from __future__ import annotations

import stat
import zlib
from pathlib import Path

from sluicegate.spark.edges.manifest import DataFile
from sluicegate.spark.edges.spoiled import data_spoiled
from sluicegate.spark.edges.topic import in_topic

BLOCK_BYTES = 2**20
"""A task reads up to two blocks beyond its share: half the size halves that and doubles the checksums in manifests."""
_DIGITS = 8


def sums_of(path: Path) -> tuple[int, str]:
    """The bytes of a file, and its blocks' checksums as one string of eight hexadecimal digits each."""
    size, sums, block = 0, [], memoryview(bytearray(BLOCK_BYTES))
    with path.open("rb") as file:
        while got := file.readinto(block):
            size += got
            sums.append(f"{zlib.crc32(block[:got]):08x}")
    return size, "".join(sums)


def check_size(edge: Path, number: int, file: DataFile) -> int:
    """The size of a data file in bytes; raises if it is missing or its size has changed.

    For records of a topic 0: they are counted as they are read.
    """
    if in_topic(file.path):
        return 0
    try:
        found = (edge / file.path).stat()
    except (FileNotFoundError, NotADirectoryError):
        raise data_spoiled(edge, number, file.path, "is missing") from None
    if stat.S_ISDIR(found.st_mode):
        raise data_spoiled(edge, number, file.path, "is a folder")
    size = found.st_size
    if file.size is not None and size != file.size:
        raise data_spoiled(edge, number, file.path, f"has {size} bytes, {file.size} were written")
    return size


def check_file(edge: Path, number: int, file: DataFile) -> None:
    """Read all of a data file; raises if it is not as it was written."""
    check_size(edge, number, file)
    if file.sums is None:
        return
    _, sums = sums_of(edge / file.path)
    if sums != file.sums:
        at = next(i for i in range(0, len(sums), _DIGITS) if sums[i : i + _DIGITS] != file.sums[i : i + _DIGITS])
        first = at // _DIGITS * BLOCK_BYTES
        raise data_spoiled(edge, number, file.path, changed(first, min(first + BLOCK_BYTES, file.size or 0)))


def changed(first: int, end: int) -> str:
    return f"was changed after it was written (the checksum of its bytes {first} to {end} does not match)"
