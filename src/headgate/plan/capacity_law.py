"""What m machines sustain, as a power law that is learned from few small sizes and from every step near its limit.

    log C = a + b log m + noise,   b ~ N(0.9, 0.1^2) before the first sample,   noise ~ N(0, s^2)

Two numbers extrapolate from 3, 4, 6 and 8 machines to a hundred without turning down or running into a pole, and their
posterior says how little is known there:  sd(log C_m)^2 = s^2 + x' V x,  x = (1, log m).

A late step shows the capacity itself: a sample. It is a low one, since it was late, so samples alone would sink the
curve. A step on time shows that the capacity exceeded the load; with z = (log load - log C_m)/s and the hazard
r = phi(z)/(1 - Phi(z)), Newton's step on that likelihood (Tobit) is a sample log C_m + s r/w of weight w = r (r - z).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import log_ndtr

from headgate.domain.topology import require
from headgate.plan.on_time import Capacity

LARGEST = 128
_SLOPE, _SLOPE_SD = 0.9, 0.1
_LEAST_NOISE, _ASSUMED_NOISE = 0.02, 0.05
_TELLING = -3.0  # deviations below the curve from which a step on time says anything (its weight is under 2% there)


@dataclass(frozen=True, slots=True)
class CapacityLaw:
    """Precision (a, b symmetric: ``aa``, ``ab``, ``bb``) and its product with the mean, and the noise of one draw."""

    aa: float
    ab: float
    bb: float
    mean_a: float
    mean_b: float
    noise: float
    largest: int = LARGEST

    def curve(self) -> Capacity:
        """Mean and deviation for 1..``largest`` machines."""
        a, b, v = self._posterior()
        log_m = np.log(np.arange(1.0, self.largest + 1))
        doubt = v[0] + 2 * v[1] * log_m + v[2] * log_m**2
        mean = np.exp(a + b * log_m)
        return Capacity(mean, mean * np.sqrt(self.noise**2 + np.maximum(doubt, 0.0)))

    def late(self, machines: int, capacity_per_s: float) -> CapacityLaw:
        """A step that ran flat out: its throughput is a sample."""
        if capacity_per_s <= 0 or machines < 1:
            return self
        return self._with(machines, math.log(capacity_per_s), 1.0)

    def on_time(self, machines: int, load_per_s: float) -> CapacityLaw:
        """A step whose load was carried: the capacity was above it. Unchanged (itself) where that says nothing."""
        if load_per_s <= 0 or machines < 1:
            return self
        a, b, _ = self._posterior()
        expected = a + b * math.log(machines)
        z = (math.log(load_per_s) - expected) / self.noise
        if z < _TELLING:
            return self
        hazard = math.exp(-0.5 * z * z - 0.5 * math.log(2 * math.pi) - float(log_ndtr(-z)))
        weight = min(max(hazard * (hazard - z), 1e-6), 1.0)
        return self._with(machines, expected + self.noise * hazard / weight, weight)

    def _with(self, machines: int, log_c: float, weight: float) -> CapacityLaw:
        x, w = math.log(machines), weight / self.noise**2
        return replace(
            self,
            aa=self.aa + w,
            ab=self.ab + w * x,
            bb=self.bb + w * x * x,
            mean_a=self.mean_a + w * log_c,
            mean_b=self.mean_b + w * x * log_c,
        )

    def _posterior(self) -> tuple[float, float, tuple[float, float, float]]:
        det = self.aa * self.bb - self.ab**2
        v = (self.bb / det, -self.ab / det, self.aa / det)
        return v[0] * self.mean_a + v[1] * self.mean_b, v[1] * self.mean_a + v[2] * self.mean_b, v


def capacity_law(samples: Iterable[tuple[int, float]], largest: int = LARGEST) -> CapacityLaw:
    """The law of measured (machines, rate) pairs; the noise is what they scatter by, 5% assumed below four of them.

    >>> law = capacity_law([(m, 100.0 * m**0.9) for m in (3, 4, 6, 8)])
    >>> law.curve().mean_per_s[[0, 47]].round().tolist(), round(100 * 48**0.9)
    ([100.0, 3259.0], 3259)
    """
    pairs = list(samples)
    require(bool(pairs), "no capacity samples: measure at least one size")
    require(all(m >= 1 and rate > 0 for m, rate in pairs), "capacity samples need machines >= 1 and rates above 0")
    precision = 1 / _SLOPE_SD**2
    prior = CapacityLaw(1e-9, 0.0, precision, 0.0, _SLOPE * precision, _ASSUMED_NOISE, largest)
    law = prior
    for m, rate in pairs:
        law = law.late(m, rate)
    if len(pairs) < 4:
        return law
    a, b, _ = law._posterior()
    squares = sum((math.log(rate) - a - b * math.log(m)) ** 2 for m, rate in pairs)
    law = replace(prior, noise=max(math.sqrt(squares / (len(pairs) - 2)), _LEAST_NOISE))
    for m, rate in pairs:
        law = law.late(m, rate)
    return law
