"""Cuts the rows of a batch into k shares: equal ones, or in proportion to what each instance can process.

Files are cut at rows, so that one large file can keep k tasks busy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

LARGE_ROWS = 50_000
"""Smaller shares are cut at the exact row: their rows may be expensive to process, and are cheap to read."""
_NEAR = 0.06
"""How much larger or smaller a share may become, as a fraction of it, to end at a whole row group."""


@dataclass(frozen=True, slots=True)
class Slice:
    """Rows ``first`` up to, not including, ``end`` of a file."""

    path: str
    first: int
    end: int


def cut(
    files: Sequence[tuple[str, int]],
    k: int,
    shares: Sequence[float] = (),
    groups: Callable[[str], Sequence[int]] | None = None,
) -> tuple[tuple[Slice, ...], ...]:
    """At most ``k`` shares of the rows in ``files``, in order; none is empty.

    ``groups`` tells the rows of each row group of a file: large shares are then cut where a group or file ends, if that
    is near, since a group that two tasks share is decoded twice.

    >>> [[(s.path, s.first, s.end) for s in share] for share in cut([("a", 3), ("b", 3)], 2)]
    [[('a', 0, 3)], [('b', 0, 3)]]
    >>> [sum(s.end - s.first for s in share) for share in cut([("a", 10)], 2, (4.0, 1.0))]
    [8, 2]
    """
    total = sum(rows for _, rows in files)
    if total == 0:
        return ()
    borders = _borders(total, max(k, 1), shares)
    if groups is not None and total / len(borders) >= LARGE_ROWS:
        near = _NEAR * total / len(borders)
        borders = [_snapped(border, near, files, groups) for border in borders[:-1]] + [total]
    starts = [0, *borders[:-1]]
    found = (tuple(_between(files, start, end)) for start, end in zip(starts, borders, strict=True))
    return tuple(share for share in found if share)


def _between(files: Sequence[tuple[str, int]], start: int, end: int) -> Iterator[Slice]:
    """The rows ``start`` up to ``end`` of all files taken as one."""
    at = 0
    for path, rows in files:
        first, last = max(start - at, 0), min(end - at, rows)
        if last > first:
            yield Slice(path, first, last)
        at += rows


def _snapped(border: int, near: float, files: Sequence[tuple[str, int]], groups: Callable[[str], Sequence[int]]) -> int:
    """The end of a file or row group that is nearest to a border, if it is near enough."""
    at = 0
    for path, rows in files:
        if at <= border < at + rows:
            ends = [at, *(at + end for end in accumulate(groups(path)))]
            nearest = min(ends, key=lambda end: abs(end - border))
            return nearest if abs(nearest - border) <= near else border
        at += rows
    return border


def _borders(total: int, k: int, shares: Sequence[float]) -> list[int]:
    """Where each share ends, in rows; shares that do not fit k, or are not usable, count as equal."""
    usable = len(shares) == k and all(math.isfinite(s) and s >= 0 for s in shares) and sum(shares) > 0
    weights = list(shares) if usable else [1.0] * k
    whole, so_far, borders = sum(weights), 0.0, []
    for weight in weights:
        so_far += weight
        borders.append(round(total * so_far / whole))
    borders[-1] = total
    return borders
