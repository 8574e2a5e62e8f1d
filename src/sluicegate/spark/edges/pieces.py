"""Translates rows of a file for Spark's Parquet reader: bytes for the row groups, then rows to skip and to take."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from sluicegate.spark.edges.shares import Slice


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows ``skip`` to ``skip + take`` of the row groups whose middle lies in ``length`` bytes from ``start``.

    ``whole``: those are all rows of these groups.
    """

    path: str
    start: int
    length: int
    file_bytes: int
    skip: int
    take: int
    whole: bool
    sums: str = ""
    """Checksums of the file's blocks; empty if they are not known."""

    def as_list(self) -> list[str | int]:
        return [self.path, self.start, self.length, self.file_bytes, self.skip, self.take, self.sums]


def piece_of(slice_: Slice, file_rows: int, sums: str = "") -> Piece:
    """The piece with the rows of a slice. The footer is read only if several tasks share the file."""
    path = Path(slice_.path)
    size = path.stat().st_size
    wanted = slice_.end - slice_.first
    if wanted == file_rows:
        return Piece(slice_.path, 0, size, size, 0, wanted, True, sums)
    footer = pq.read_metadata(path)
    at = first_row = last_row = 0
    borders: list[int] = []
    for index in range(footer.num_row_groups):
        group = footer.row_group(index)
        if at < slice_.end and at + group.num_rows > slice_.first:
            first_row = first_row if borders else at
            columns = [group.column(i) for i in range(group.num_columns)]
            begin = min(min(c.data_page_offset, c.dictionary_page_offset or c.data_page_offset) for c in columns)
            borders += [begin, begin + sum(c.total_compressed_size for c in columns)]
            last_row = at + group.num_rows
        at += group.num_rows
    skip = slice_.first - first_row
    whole = last_row - first_row == wanted
    return Piece(slice_.path, borders[0], borders[-1] - borders[0], size, skip, wanted, whole, sums)


def records_of(slice_: Slice) -> Piece:
    """The piece for records of a topic: only which rows, no bytes of a file."""
    return Piece(slice_.path, 0, 0, 0, slice_.first, slice_.end - slice_.first, False)


def group_rows(path: str) -> list[int]:
    """The rows of each row group of a file."""
    footer = pq.read_metadata(path)
    return [footer.row_group(index).num_rows for index in range(footer.num_row_groups)]
