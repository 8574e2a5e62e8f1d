"""A histogram of times in log-spaced bins: quantiles of any number of values in 30 KB.

A bin is the exponent of a number and the first five bits of its mantissa: 32 bins an octave, each at most 3.1% wide,
from 2^-40 s (a picosecond) to 2^40 s. Finding it is a shift, not a logarithm. Within a bin values are taken as uniform.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sluicegate.lab.simulate.compiled import inlined

_BITS = 5
_SHIFT = 52 - _BITS
_LOWEST = (1023 - 40) << _BITS
BINS = 80 << _BITS


@inlined
def count(histogram: NDArray[np.int64], value: float) -> None:
    """Count one value; values outside the range go to the first or last bin."""
    at = int(np.float64(value).view(np.int64) >> _SHIFT) - _LOWEST
    histogram[min(max(at, 0), BINS - 1)] += 1


def edges() -> NDArray[np.float64]:
    """The ``BINS + 1`` bounds of the bins."""
    bits = (np.arange(BINS + 1, dtype=np.int64) + _LOWEST) << _SHIFT
    bounds: NDArray[np.float64] = bits.view(np.float64)
    return bounds


def quantile(histogram: NDArray[np.int64], level: float) -> float | None:
    """The value not exceeded by a share ``level`` of those counted; ``None`` if none were.

    >>> counted = np.zeros(BINS, dtype=np.int64)
    >>> for value in (1.0, 2.0, 3.0, 4.0):
    ...     count(counted, value)
    >>> round(quantile(counted, 0.5), 1), quantile(np.zeros(BINS, dtype=np.int64), 0.5)
    (2.1, None)
    """
    total = int(histogram.sum())
    if total == 0:
        return None
    upto = np.cumsum(histogram)
    wanted = level * total
    at = int(np.searchsorted(upto, wanted, side="left"))
    before = float(upto[at - 1]) if at else 0.0
    low, high = edges()[at : at + 2]
    return float(low + (high - low) * (wanted - before) / float(histogram[at]))
