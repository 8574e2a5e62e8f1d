"""Downsamples a long series: the lowest and the highest value of each stretch of time, in the order they came.

A mean would hide a peak that broke the promise; the extremes keep it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]
Ints = NDArray[np.intp]


def bucket_starts(at_s: Floats, buckets: int) -> Ints:
    """Index at which each of at most ``buckets`` equal stretches of time begins; those without a tick are left out.

    >>> bucket_starts(np.array([0.0, 1.0, 2.0, 3.0]), 2).tolist()
    [0, 2]
    """
    if len(at_s) == 0:
        return np.zeros(0, dtype=np.intp)
    edges = np.linspace(at_s[0], at_s[-1], buckets, endpoint=False)
    return np.unique(np.searchsorted(at_s, edges))


def extremes(values: Floats, starts: Ints) -> Ints:
    """Two indices for each stretch, of its lowest and highest value; its first index if it has no values.

    >>> values = np.array([1.0, 5.0, 2.0, np.nan, np.nan])
    >>> extremes(values, np.array([0, 3])).tolist()
    [0, 1, 3, 3]
    """
    if len(starts) == 0:
        return starts
    found = [_places_of(least(values, starts), values, starts) for least in (np.fmin.reduceat, np.fmax.reduceat)]
    return np.sort(np.stack(found, axis=1), axis=1).ravel()


def _places_of(wanted: Floats, values: Floats, starts: Ints) -> Ints:
    """In each stretch the first index with the wanted value, or its first index if none has it."""
    ends = np.append(starts[1:], len(values))
    equal = np.append(np.flatnonzero(values == np.repeat(wanted, ends - starts)), len(values))
    first = equal[np.searchsorted(equal, starts)]
    return np.where(first < ends, first, starts)


def spread_times(at_s: Floats, starts: Ints) -> Floats:
    """Two times for each stretch, a quarter and three quarters into it: one axis that all series share."""
    ends = np.append(at_s[starts[1:]], at_s[-1])
    first, width = at_s[starts], ends - at_s[starts]
    return np.stack([first + width / 4, first + 3 * width / 4], axis=1).ravel()
