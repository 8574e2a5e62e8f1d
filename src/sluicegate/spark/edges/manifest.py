"""A manifest: what one batch put on an edge. Small, JSON, published by an atomic rename, never changed after.

``number`` is the writer's batch number, so a reader finds what is new by asking whether the next number exists.
``rows_before`` counts all rows of earlier manifests: queue lengths are differences of two manifests, whatever was
deleted since.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from sluicegate.domain.births import Births


@dataclass(frozen=True, slots=True)
class DataFile:
    """A Parquet file; ``path`` is relative to the edge's folder."""

    path: str
    rows: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """See the file's docstring. ``published_s`` is in seconds since the epoch."""

    number: int
    files: tuple[DataFile, ...]
    rows_before: int
    born: Births
    published_s: float
    watermark_ms: int | None = None
    """Of the rows up to this batch: none that comes later is older, but for late ones."""
    advances: bool = False
    """Whether the watermark is later than that of the manifest before."""

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    @property
    def matters(self) -> bool:
        """Whether a reader has anything to do with it."""
        return self.rows > 0 or self.advances

    @property
    def rows_after(self) -> int:
        return self.rows_before + self.rows

    def to_json(self) -> str:
        return json.dumps(
            {
                "number": self.number,
                "rows": self.rows,
                "rows_before": self.rows_before,
                "published_s": self.published_s,
                "files": [[file.path, file.rows] for file in self.files],
                "born": [[round(t, 4), w] for t, w in self.born.points],
                **({} if self.watermark_ms is None else {"watermark": [self.watermark_ms, self.advances]}),
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Manifest:
        """
        >>> one = Manifest(3, (DataFile("data/3/a.parquet", 7),), 10, Births.of([(1.0, 7.0)]), 2.0)
        >>> Manifest.from_json(one.to_json()) == one
        True
        """
        read = json.loads(text)
        watermark_ms, advances = read.get("watermark", (None, False))
        return cls(
            number=int(read["number"]),
            files=tuple(DataFile(str(path), int(rows)) for path, rows in read["files"]),
            rows_before=int(read["rows_before"]),
            born=Births(tuple((float(t), float(w)) for t, w in read["born"])),
            published_s=float(read["published_s"]),
            watermark_ms=watermark_ms,
            advances=advances,
        )
