"""Stopping rules for measuring the maximum sustainable throughput of a saturated job: K out of N, or a known mean.

K out of N: of the last N = 5 throughput samples at least K = 4 lie within +-delta = 5% of the sample before them. The
first of the N is compared with its predecessor too, so N + 1 samples are needed.

On a machine with other load, samples may scatter by more than delta for ever, while the error of their mean shrinks. So
2 N samples suffice as well if the 95% interval of their mean is within +-delta and the means of both halves are that
close: a throughput that still rises has halves that differ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean, stdev

from sluicegate.domain.topology import require

_T_95 = 2.26
"""Student's t for the mean of ten samples."""


def converged(samples_per_s: Sequence[float], latest: int = 5, steady: int = 4, delta: float = 0.05) -> bool:
    """Whether at least ``steady`` of the ``latest`` samples are within ``delta`` of the one before.

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


def mean_known(samples_per_s: Sequence[float], latest: int = 5, delta: float = 0.05) -> bool:
    """Whether the mean of the last 2 ``latest`` samples is known within ``delta`` and equal in both halves within it.

    >>> mean_known([90.0, 110.0, 92.0, 108.0, 95.0, 105.0, 89.0, 112.0, 91.0, 109.0], delta=0.1)
    True
    >>> mean_known([60.0, 65.0, 70.0, 75.0, 80.0, 85.0, 90.0, 95.0, 100.0, 105.0], delta=0.1)
    False
    """
    recent = list(samples_per_s[-2 * latest :])
    if len(recent) < 2 * latest:
        return False
    mean, before, after = fmean(recent), fmean(recent[:latest]), fmean(recent[latest:])
    half_width = _T_95 * stdev(recent) / math.sqrt(len(recent))
    return half_width <= delta * mean and abs(after - before) <= delta * mean
