"""Measured throughputs: when a saturated job has been measured for long enough, and summary statistics by size.

Regression on the statistics is exact and memory does not grow. Of the samples tau of one size m only their number,
mean, sum of squared deviations and mean of 1/tau are kept: the least squares of tau or 1/tau on functions of m, and the
residual sum of squares in units of tau, need no more.

Stopping rules: K out of N, or a known mean. K out of N: of the last N = 5 throughput samples at least K = 4 lie within
+-delta = 5% of the sample before them. The first of the N is compared with its predecessor too, so N + 1 samples are
needed.

On a machine with other load, samples may scatter by more than delta for ever, while the error of their mean shrinks. So
2 N samples suffice as well if the 95% interval of their mean is within +-delta and the means of both halves are that
close: a throughput that still rises has halves that differ.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, stdev

import numpy as np
from numpy.typing import NDArray

from sluicegate.domain.topology import require
from sluicegate.errors import BadInput

Floats = NDArray[np.float64]

# Rates are capped here so that squares stay finite; an operator that almost no rows reach can give a larger one.
_UNBOUNDED_PER_S = 1e100


@dataclass(frozen=True, eq=False, slots=True)
class MstSamples:
    """Arrays by rising size. ``spread`` is the sum of squared deviations from ``mean_per_s``."""

    sizes: Floats
    counts: Floats
    mean_per_s: Floats
    spread: Floats
    mean_inverse_s: Floats

    @property
    def number(self) -> int:
        return int(self.counts.sum())

    @property
    def largest(self) -> int:
        return int(self.sizes[-1])

    def residual_squares(self, predicted_per_s: Floats) -> float:
        """Sum over all samples of (tau - predicted)^2, ``predicted_per_s`` given size by size."""
        return float(np.sum(self.spread + self.counts * (self.mean_per_s - predicted_per_s) ** 2))

    def with_one(self, machines: int, rate_per_s: float) -> MstSamples:
        """The samples with one added (means and spread by Welford's update)."""
        _check(machines, rate_per_s)
        rate_per_s = min(rate_per_s, _UNBOUNDED_PER_S)
        at = int(np.searchsorted(self.sizes, machines))
        if at == len(self.sizes) or self.sizes[at] != machines:
            return self._with_size(at, machines, rate_per_s)
        counts, mean = self.counts.copy(), self.mean_per_s.copy()
        spread, inverse = self.spread.copy(), self.mean_inverse_s.copy()
        counts[at] += 1
        off = rate_per_s - mean[at]
        mean[at] += off / counts[at]
        spread[at] += off * (rate_per_s - mean[at])
        inverse[at] += (1 / rate_per_s - inverse[at]) / counts[at]
        return MstSamples(self.sizes, counts, mean, spread, inverse)

    def _with_size(self, at: int, machines: int, rate_per_s: float) -> MstSamples:
        return MstSamples(
            np.insert(self.sizes, at, float(machines)),
            np.insert(self.counts, at, 1.0),
            np.insert(self.mean_per_s, at, rate_per_s),
            np.insert(self.spread, at, 0.0),
            np.insert(self.mean_inverse_s, at, 1 / rate_per_s),
        )


def samples_of(pairs: Iterable[tuple[int, float]]) -> MstSamples:
    """Samples from (machines, rate per second) pairs; at least one.

    >>> two = samples_of([(3, 90.0), (3, 110.0)])
    >>> two.mean_per_s.tolist(), two.spread.tolist()
    ([100.0], [200.0])
    """
    samples = MstSamples(*(np.empty(0) for _ in range(5)))
    for machines, rate_per_s in pairs:
        samples = samples.with_one(machines, rate_per_s)
    if not len(samples.sizes):
        raise BadInput("no throughput samples: measure at least one size")
    return samples


def _check(machines: int, rate_per_s: float) -> None:
    if machines < 1:
        raise BadInput(f"a throughput sample of {machines} machines: it needs at least 1")
    if not (math.isfinite(rate_per_s) and rate_per_s > 0):
        raise BadInput(f"throughput of {machines} machines is {rate_per_s}: give a finite rate above 0, per second")


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
