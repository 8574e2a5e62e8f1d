"""Skewness of the load of the nodes in use (Es-Stream Eq 19, 20).

    SK = n sum (R - mean)^3 / ((n-1)(n-2) sigma^3),   sigma the population deviation

Above 0 most nodes carry less than the mean, below 0 most carry more. n counts the nodes the application uses, not
the cluster's. With fewer than 3 nodes, or all at one load, SK is undefined: it is taken as 0, with a note.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sluicegate.errors import BadInput

_SAME_LOAD = 1e-9
"""Deviations below it are rounding errors, so their cube is meaningless."""


@dataclass(frozen=True, slots=True)
class Skewness:
    """SK and the mean load it belongs to; ``note`` says why SK was taken as 0 where it is undefined."""

    value: float
    mean: float
    note: str | None = None


def skewness(loads: Sequence[float]) -> Skewness:
    """SK of node loads, each a share of what the node has.

    >>> round(skewness([0.2, 0.2, 0.2, 0.6]).value, 4)
    3.0792
    >>> skewness([0.2, 0.6]).note
    'skewness needs 3 nodes, 2 in use: taken as 0'
    """
    if not all(math.isfinite(load) for load in loads):
        raise BadInput("a node's load is not finite: leave out nodes that were not measured")
    n = len(loads)
    mean = math.fsum(loads) / n if n else 0.0
    if n < 3:
        return Skewness(0.0, mean, f"skewness needs 3 nodes, {n} in use: taken as 0")
    sigma = math.sqrt(math.fsum((load - mean) ** 2 for load in loads) / n)
    if sigma <= _SAME_LOAD:
        return Skewness(0.0, mean, f"all {n} nodes carry the same load: skewness taken as 0")
    cubes = math.fsum(((load - mean) / sigma) ** 3 for load in loads)
    return Skewness(n * cubes / ((n - 1) * (n - 2)), mean)
