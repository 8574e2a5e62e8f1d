"""The load of an application in rows per second: a schedule over the run, or a trace file stretched over it."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np

from sluicegate.config.trace_file import read_trace
from sluicegate.errors import BadInput

Load = Callable[[float], float]
"""Maps the elapsed share of the run, 0 to 1, to rows per second."""


def constant(rate_per_s: float) -> Load:
    return lambda share: rate_per_s


def triples(calm_per_s: float) -> Load:
    """Calm for about a third of the run, a ramp to three times that within a twelfth, and as fast a ramp back.

    >>> load = triples(100.0)
    >>> load(0.0), load(0.5), load(1.0)
    (100.0, 300.0, 100.0)
    """

    def rate(share: float) -> float:
        ramp = min(max((share - 0.36) * 12, 0.0), max((0.66 - share) * 12, 0.0), 1.0)
        return calm_per_s * (1 + 2 * ramp)

    return rate


def from_file(path: Path, calm_per_s: float) -> Load:
    """A trace stretched over the run, its mean scaled to one and a half times the calm rate."""
    values = np.asarray(read_trace(path).values, dtype=np.float64)
    mean = float(values.mean())
    if not mean > 0 or not math.isfinite(mean):
        raise BadInput(f"{path}: all rates are zero: give a trace with a load in it")
    scaled = values * (1.5 * calm_per_s / mean)
    return lambda share: float(np.interp(share * (len(scaled) - 1), np.arange(len(scaled)), scaled))
