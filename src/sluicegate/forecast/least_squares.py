"""Recursive least squares with exponential forgetting.

    g = P x / (f + x' P x),   w <- w + g e,   P <- (P - g (P x)') / f

with e the error of the prediction w'x and f the forgetting factor: a sample n steps old weighs f^n. P grows without
bound along directions that are never excited (a load that stays constant); its trace is held at ``_MOST_TRACE``.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# P's largest trace. Half: slopes are learned later. Double: forecasts overshoot when a load moves after a constant day.
_MOST_TRACE = 100.0


@njit(cache=True)
def dot(weights: Floats, x: Floats) -> float:
    """The prediction w'x."""
    total = 0.0
    for i in range(len(x)):
        total += weights[i] * x[i]
    return total


@njit(cache=True)
def regress(weights: Floats, inverse: Floats, x: Floats, error: float, forget: float) -> None:
    """Update ``weights`` and ``inverse`` (P) in place with one sample whose prediction was off by ``error``.

    >>> weights, inverse = np.zeros(1), np.array([[1.0]])
    >>> regress(weights, inverse, np.array([1.0]), 2.0, 1.0)
    >>> weights.tolist(), inverse.tolist()
    ([1.0], [[0.5]])
    """
    n = len(x)
    gain = np.zeros(n)
    scale = forget
    for i in range(n):
        gain[i] = dot(inverse[i], x)
        scale += gain[i] * x[i]
    trace = 0.0
    for i in range(n):
        weights[i] += gain[i] / scale * error
        for j in range(n):
            inverse[i, j] = (inverse[i, j] - gain[i] * gain[j] / scale) / forget
        trace += inverse[i, i]
    if trace > _MOST_TRACE:
        for i in range(n):
            for j in range(n):
                inverse[i, j] *= _MOST_TRACE / trace
