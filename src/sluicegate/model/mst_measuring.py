"""When a job that runs flat out has shown its maximum sustainable throughput: the K out of N rule.

Of the last N = 5 throughput samples at least K = 4 lie within +-delta = 5% of the sample before them. The first of
the N has one before it too, so N + 1 samples are needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from sluicegate.domain.topology import require


def converged(samples_per_s: Sequence[float], latest: int = 5, steady: int = 4, delta: float = 0.05) -> bool:
    """Whether ``steady`` of the ``latest`` samples are within ``delta`` of the one before.

    >>> converged([10.0, 80.0, 99.0, 100.0, 101.0, 99.0, 100.0])
    True
    >>> converged([10.0, 80.0, 99.0, 100.0])
    False
    """
    require(1 <= steady <= latest, f"{steady} of {latest} samples: need 1 <= steady <= latest")
    require(delta >= 0, f"delta is {delta}: give a share, 0 or more, such as 0.05")
    if len(samples_per_s) <= latest:
        return False
    recent = samples_per_s[-latest - 1 :]
    close = sum(abs(now - before) <= delta * before for before, now in pairwise(recent))
    return close >= steady


def measured_mst(samples_per_s: Sequence[float], latest: int = 5, steady: int = 4, delta: float = 0.05) -> float | None:
    """The mean of the ``latest`` samples once they have converged above zero; ``None`` until then.

    The one sample that the rule allows to be off is part of the mean: throughput varies.

    >>> measured_mst([99.0, 100.0, 101.0, 99.0, 101.0, 99.0])
    100.0
    """
    if not converged(samples_per_s, latest, steady, delta):
        return None
    mean = sum(samples_per_s[-latest:]) / latest
    return mean if mean > 0 else None
