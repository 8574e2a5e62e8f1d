"""A manifest: what one batch put on an edge. Small, JSON, published by an atomic rename, never changed after.

``number`` is the writer's batch number, so a reader finds what is new by asking whether the next number exists.
``rows_before`` counts all rows of earlier manifests: queue lengths are differences of two manifests, whatever was
deleted since. Manifests form a chain: each names the checksum of the one before, and carries one of itself.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from sluicegate.domain.births import Births
from sluicegate.spark.edges.seal import opened, sealed


@dataclass(frozen=True, slots=True)
class DataFile:
    """A Parquet file; ``path`` is relative to the edge's folder.

    ``size`` in bytes, ``sums`` of its blocks (see ``file_sums``); neither is known for files of older versions.
    """

    path: str
    rows: int
    size: int | None = None
    sums: str | None = None

    def as_list(self) -> list[str | int]:
        known: list[str | int] = [] if self.size is None or self.sums is None else [self.size, self.sums]
        return [self.path, self.rows, *known]

    @classmethod
    def from_list(cls, read: list[str | int]) -> DataFile:
        path, rows, *known = read
        size, sums = (int(known[0]), str(known[1])) if known else (None, None)
        return cls(str(path), int(rows), size, sums)


@dataclass(frozen=True, slots=True)
class Manifest:
    """What one batch put on an edge. ``published_s`` is in seconds since the epoch."""

    number: int
    files: tuple[DataFile, ...]
    rows_before: int
    born: Births
    published_s: float
    watermark_ms: int | None = None
    """The watermark after this batch: rows that come later are not older, except late ones."""
    advances: bool = False
    """Whether the watermark is later than that of the manifest before."""
    before: str = ""
    """The checksum of the manifest before; empty for the first one, and where an older version wrote it."""
    seal: str = field(default="", compare=False)
    """Its own checksum, set when it is read."""

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    @property
    def matters(self) -> bool:
        """Whether a reader must process it: it has rows, or advances the watermark."""
        return self.rows > 0 or self.advances

    @property
    def rows_after(self) -> int:
        return self.rows_before + self.rows

    def to_json(self) -> str:
        text = json.dumps(
            {
                "number": self.number,
                "rows": self.rows,
                "rows_before": self.rows_before,
                "published_s": self.published_s,
                "files": [file.as_list() for file in self.files],
                "born": [[round(t, 4), w] for t, w in self.born.points],
                **({} if self.watermark_ms is None else {"watermark": [self.watermark_ms, self.advances]}),
                "before": self.before,
            }
        )
        return sealed(text)

    @classmethod
    def from_json(cls, text: str) -> Manifest:
        """Parse a manifest; ``ValueError`` says what is wrong if it is damaged.

        >>> one = Manifest(3, (DataFile("data/3/a.parquet", 7),), 10, Births.of([(1.0, 7.0)]), 2.0)
        >>> Manifest.from_json(one.to_json()) == one
        True
        """
        read, seal = opened(text)
        try:
            return cls._of(read, seal)
        except (KeyError, TypeError, ValueError, IndexError) as problem:
            raise ValueError("is no manifest") from problem

    @classmethod
    def _of(cls, read: dict[str, Any], seal: str) -> Manifest:
        watermark_ms, advances = read.get("watermark", (None, False))
        return cls(
            number=int(read["number"]),
            files=tuple(DataFile.from_list(file) for file in read["files"]),
            rows_before=int(read["rows_before"]),
            born=Births(tuple((float(t), float(w)) for t, w in read["born"])),
            published_s=float(read["published_s"]),
            watermark_ms=None if watermark_ms is None else int(watermark_ms),
            advances=bool(advances),
            before=str(read.get("before", "")),
            seal=seal,
        )
