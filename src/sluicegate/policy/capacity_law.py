"""Capacity of m machines: a power law with local corrections, learned from few small sizes and from every step.

    log C = a + b log m + sum_j c_j hat_j(log2 m) + noise
    b ~ N(0.9, 0.1^2),  c_j ~ N(0, 0.05^2) before the first sample,  noise ~ N(0, s^2)

The power law extrapolates from 3, 4, 6 and 8 machines to a hundred without turning down or having a pole; hat functions
at 1, 2, 4, .. machines, linear in between, model deviations from it where samples exist. The posterior gives the
uncertainty of each size:  sd(log C_m)^2 = s^2 + x' V x.  s^2 is the mean squared error of the samples, with
``_ASSUMED_NOISE`` counted as one of them.

A measured capacity is a sample. Where capacity is measured in late steps only, on-time steps are censored samples:
their capacity was above the load; with z = (log load - log C_m)/s and the hazard r = phi(z)/(1 - Phi(z)), Newton's step
on that likelihood (Tobit) is a sample log C_m + s r/w of weight w = r (r - z).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from sluicegate.domain.topology import require
from sluicegate.model.mst import LARGEST
from sluicegate.policy.on_time import CapacityBelief

Floats = NDArray[np.float64]

# Prior exponent of the power law. At 1 (linear), capacity at sizes that never ran is overestimated (by 7% at 48
# machines, for a true exponent of 0.9 measured at 3 to 8).
_SLOPE = 0.9
# Prior relative deviation of one sample (it counts as one sample), and of each hat. Half: too few machines in the first
# steps of a noisy pipeline, and deviations from the power law are learned later. Double: too many in the first steps of
# a steady one, and one noisy sample bends the curve.
_ASSUMED_NOISE = 0.05
_HATS = LARGEST.bit_length()  # the curve may bend at 1, 2, 4, .. LARGEST machines
_SLOPE_SD = 1 - _SLOPE  # linear scaling is one deviation away
_PRIOR_PRECISION = np.diag([1e-9, 1 / _SLOPE_SD**2, *[1 / _ASSUMED_NOISE**2] * _HATS])
_PRIOR_MOMENT = _PRIOR_PRECISION @ np.array([0.0, _SLOPE, *[0.0] * _HATS])


@dataclass(frozen=True, eq=False, slots=True)
class CapacityLaw:
    """Weighted sums over the samples: x x' (``gram``), x log C (``moment``), squared errors (``squares``), weights."""

    gram: Floats
    moment: Floats
    squares: float = 0.0
    weight: float = 0.0
    largest: int = LARGEST

    @property
    def noise(self) -> float:
        """Relative standard deviation of one sample."""
        variance = (_ASSUMED_NOISE**2 + self.squares) / (1 + self.weight)
        return math.sqrt(variance)

    def curve(self) -> CapacityBelief:
        """Mean and deviation for 1..``largest`` machines."""
        mean, doubt = self._posterior()
        rows = _rows(self.largest)
        of_size = np.exp(rows @ mean)
        unknown = np.maximum(np.einsum("ij,jk,ik->i", rows, doubt, rows), 0.0)
        return CapacityBelief(of_size, of_size * np.sqrt(self.noise**2 + unknown))

    def measured(self, machines: int, capacity_per_s: float, weight: float = 1.0) -> CapacityLaw:
        """Add a step whose capacity was measured, late or not: rows done per second of useful time.

        ``weight`` below 1 is for steps whose noise is correlated.
        """
        if capacity_per_s <= 0 or machines < 1:
            return self
        mean, doubt = self._posterior()
        x, log_c = _row(machines), math.log(capacity_per_s)
        own = self.noise**2
        # only the part of the squared error that is due to noise, not to uncertainty of the curve
        square = (log_c - float(x @ mean)) ** 2 * own / (own + max(float(x @ doubt @ x), 0.0))
        after = self._with(x, log_c, weight)
        return replace(after, squares=self.squares + weight * square, weight=self.weight + weight)

    def late(self, machines: int, capacity_per_s: float) -> CapacityLaw:
        """Add a late step's capacity; it does not update the noise, as late steps are a biased selection."""
        if capacity_per_s <= 0 or machines < 1:
            return self
        return self._with(_row(machines), math.log(capacity_per_s), 1.0)

    def on_time(self, machines: int, load_per_s: float) -> CapacityLaw:
        """Add an on-time step: its capacity was above the load. Returns itself if that carries no information."""
        if load_per_s <= 0 or machines < 1:
            return self
        mean, _ = self._posterior()
        x = _row(machines)
        expected, noise = float(x @ mean), self.noise
        z = (math.log(load_per_s) - expected) / noise
        hazard = math.exp(-0.5 * z * z - 0.5 * math.log(2 * math.pi) - float(log_ndtr(-z)))
        weight = min(hazard * (hazard - z), 1.0)
        if weight < 1e-6:
            return self
        return self._with(x, expected + noise * hazard / weight, weight)

    def _with(self, x: Floats, log_c: float, weight: float) -> CapacityLaw:
        return replace(self, gram=self.gram + weight * np.outer(x, x), moment=self.moment + weight * log_c * x)

    def _posterior(self) -> tuple[Floats, Floats]:
        variance = self.noise**2
        doubt: Floats = np.asarray(np.linalg.inv(_PRIOR_PRECISION + self.gram / variance), dtype=np.float64)
        return doubt @ (_PRIOR_MOMENT + self.moment / variance), doubt


def capacity_law(samples: Iterable[tuple[int, float]], largest: int = LARGEST) -> CapacityLaw:
    """The capacity law fitted to measured (machines, rate) pairs.

    >>> law = capacity_law([(m, 100.0 * m**0.9) for m in (3, 4, 6, 8)])
    >>> law.curve().mean_per_s[[0, 47]].round().tolist(), round(100 * 48**0.9)
    ([100.0, 3259.0], 3259)
    """
    pairs = list(samples)
    require(bool(pairs), "no capacity samples: measure at least one size")
    require(all(m >= 1 and rate > 0 for m, rate in pairs), "capacity samples need machines >= 1 and rates above 0")
    size = len(_PRIOR_MOMENT)
    law = CapacityLaw(np.zeros((size, size)), np.zeros(size), largest=largest)
    for m, rate in pairs:
        law = law.measured(m, rate)
    return law


@lru_cache(maxsize=8)
def _rows(largest: int) -> Floats:
    rows = _basis(np.log(np.arange(1.0, largest + 1)))
    rows.setflags(write=False)
    return rows


def _row(machines: int) -> Floats:
    row: Floats = _basis(np.array([math.log(machines)]))[0]
    return row


def _basis(log_m: Floats) -> Floats:
    """Regression inputs: 1, log m and the hat functions; beyond the last hat it stays at 1."""
    place = np.minimum(log_m / math.log(2), _HATS - 1.0)
    hats = np.maximum(1 - np.abs(place[:, None] - np.arange(float(_HATS))), 0.0)
    return np.column_stack((np.ones_like(log_m), log_m, hats))
