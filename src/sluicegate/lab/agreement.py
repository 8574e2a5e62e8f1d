"""How well predictions agree with measurements, from pairs of (predicted, measured)."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from itertools import combinations


def pairs_in_order(compared: Sequence[tuple[float, float]]) -> tuple[int, int]:
    """How many pairs of settings are measured in the predicted order, and how many pairs there are; a tie is not.

    >>> pairs_in_order([(1.0, 1.1), (2.0, 3.0), (3.0, 2.5)])
    (2, 3)
    """
    pairs = list(combinations(compared, 2))
    return sum((a[0] - b[0]) * (a[1] - b[1]) > 0 for a, b in pairs), len(pairs)


def median_error(compared: Iterable[tuple[float, float]]) -> float:
    """The median of the predictions' relative errors, without their signs.

    >>> median_error([(1.5, 1.0), (0.75, 1.0), (1.0, 1.0)])
    0.25
    """
    return statistics.median(abs(predicted / measured - 1) for predicted, measured in compared)
