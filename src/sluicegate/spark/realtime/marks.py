"""Timestamps that a row carries through its stages, and the stage statistics computed from them.

A row's marks are microseconds since the epoch: the timestamp of its input record, then when each stage took it and
finished it. They are written as a header of its record, so that reading the sink's topic measures waiting, service and
sojourn, as DRS's measurer does with sampled tuples. Rows that an operator drops do not reach the sink and are not
measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

COLUMN = "_sluicegate"
HEADER = "sluicegate-times"
NOW = "java_method('sluicegate.RealTime', 'now')"


@dataclass(frozen=True, slots=True)
class Timed:
    """Times of one row in seconds since the epoch: input record, (taken, done) of each stage, output record."""

    born_s: float
    stages: tuple[tuple[float, float], ...]
    out_s: float


def timed(header: bytes, out_s: float) -> Timed | None:
    """Parse a row's times from its header; ``None`` if the header is not ours.

    >>> timed(b"1000000,2000000,2500000", 3.0)
    Timed(born_s=1.0, stages=((2.0, 2.5),), out_s=3.0)
    >>> timed(b"x", 3.0), timed(b"1,2", 3.0)
    (None, None)
    """
    try:
        born, *rest = (int(part) / 1e6 for part in header.decode().split(","))
    except ValueError:
        return None
    if not rest or len(rest) % 2:
        return None
    return Timed(born, tuple(zip(rest[::2], rest[1::2], strict=True)), out_s)


@dataclass(frozen=True, slots=True)
class StageFigures:
    """Totals over the rows a stage finished: rows, service seconds, their squares, and waiting seconds before it."""

    rows: int = 0
    service_s: float = 0.0
    squares: float = 0.0
    wait_s: float = 0.0

    def __add__(self, other: StageFigures) -> StageFigures:
        return StageFigures(
            self.rows + other.rows,
            self.service_s + other.service_s,
            self.squares + other.squares,
            self.wait_s + other.wait_s,
        )

    @property
    def service_per_s(self) -> float | None:
        """Rows per second of one task that is never idle."""
        return self.rows / self.service_s if self.rows and self.service_s > 0 else None

    @property
    def service_scv(self) -> float | None:
        """
        >>> StageFigures(2, 4.0, 10.0).service_scv
        0.25
        """
        if self.rows < 2 or self.service_s <= 0:
            return None
        mean_s = self.service_s / self.rows
        return max(self.squares / self.rows - mean_s * mean_s, 0.0) / (mean_s * mean_s)


def figures(rows: Iterable[Timed], names: Sequence[str]) -> dict[str, StageFigures]:
    """Add up the times of rows by stage.

    >>> figures([Timed(0.0, ((1.0, 1.5), (2.0, 4.0)), 4.1)], ["a", "b"])["b"]
    StageFigures(rows=1, service_s=2.0, squares=4.0, wait_s=0.5)
    """
    found = {name: StageFigures() for name in names}
    for row in rows:
        before_s = row.born_s
        for name, (taken_s, done_s) in zip(names, row.stages, strict=False):
            took_s = max(done_s - taken_s, 0.0)
            found[name] += StageFigures(1, took_s, took_s * took_s, max(taken_s - before_s, 0.0))
            before_s = done_s
    return found


def intake(rows: Sequence[Timed]) -> list[float]:
    """When the first stage took the first and the last of the rows, and the longest time between two; empty for none.

    >>> intake([Timed(0.0, ((at_s, at_s),), 9.0) for at_s in (4.0, 1.0, 1.5)])
    [1.0, 4.0, 2.5]
    """
    taken = sorted(row.stages[0][0] for row in rows)
    if not taken:
        return []
    return [taken[0], taken[-1], max((after - before for before, after in pairwise(taken)), default=0.0)]


def as_document(found: Mapping[str, StageFigures]) -> dict[str, list[float]]:
    return {name: [f.rows, round(f.service_s, 6), round(f.squares, 9), round(f.wait_s, 6)] for name, f in found.items()}


def from_document(told: Mapping[str, Sequence[float]]) -> dict[str, StageFigures]:
    """
    >>> one = {"a": StageFigures(3, 0.5, 0.25, 1.0)}
    >>> from_document(as_document(one)) == one
    True
    """
    return {name: StageFigures(int(n), float(s), float(q), float(w)) for name, (n, s, q, w) in told.items()}
