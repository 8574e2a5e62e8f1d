"""Cutting the rows of a batch into k shares: equal ones, or in proportion to what each instance can take.

Files are cut at rows, so that one large file still keeps k tasks busy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Slice:
    """Rows ``first`` up to, not including, ``end`` of a file."""

    path: str
    first: int
    end: int


def cut(files: Sequence[tuple[str, int]], k: int, shares: Sequence[float] = ()) -> tuple[tuple[Slice, ...], ...]:
    """At most ``k`` shares of the rows in ``files``, in order; none is empty.

    >>> [[(s.path, s.first, s.end) for s in share] for share in cut([("a", 3), ("b", 3)], 2)]
    [[('a', 0, 3)], [('b', 0, 3)]]
    >>> [sum(s.end - s.first for s in share) for share in cut([("a", 10)], 2, (4.0, 1.0))]
    [8, 2]
    """
    total = sum(rows for _, rows in files)
    if total == 0:
        return ()
    borders = _borders(total, max(k, 1), shares)
    out: list[tuple[Slice, ...]] = []
    left, at = list(reversed([(path, 0, rows) for path, rows in files if rows])), 0
    for border in borders:
        share: list[Slice] = []
        while at < border:
            path, first, end = left.pop()
            taken = min(end - first, border - at)
            share.append(Slice(path, first, first + taken))
            at += taken
            if first + taken < end:
                left.append((path, first + taken, end))
        if share:
            out.append(tuple(share))
    return tuple(out)


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
