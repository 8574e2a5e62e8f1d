"""What m machines sustain: a power law with room for another shape, learned from few small sizes and from every step.

    log C = a + b log m + sum_j c_j hat_j(log2 m) + noise
    b ~ N(0.9, 0.1^2),  c_j ~ N(0, 0.05^2) before the first sample,  noise ~ N(0, s^2)

The power law extrapolates from 3, 4, 6 and 8 machines to a hundred without turning down or running into a pole; hats
at 1, 2, 4, .. machines, linear in between, take up how the truth differs from it where it was seen. The posterior says
how little is known of a size:  sd(log C_m)^2 = s^2 + x' V x.  s^2 is the mean square of what samples were off by, with
``_ASSUMED_NOISE`` counted as one of them.

A measured capacity is a sample. Where it is known of late steps only, those on time count too: theirs was above the
load; with z = (log load - log C_m)/s and the hazard r = phi(z)/(1 - Phi(z)), Newton's step on that likelihood (Tobit)
is a sample log C_m + s r/w of weight w = r (r - z).
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

# The power of machines that capacity grows with, before the first sample: 1 is in proportion, and sizes that never ran
# are then expected to carry more than they do (7% more at 48 machines, of a true 0.9 measured at 3 to 8).
_SLOPE = 0.9
# A draw's relative deviation before any was seen (it counts as one sample), and that of a bend of the curve. Half: too
# few machines in the first steps of a noisy pipeline, and bends are followed later. Double: too many in those of a
# steady one, and one noisy sample bends the curve.
_ASSUMED_NOISE = 0.05
_HATS = LARGEST.bit_length()  # the curve may bend at 1, 2, 4, .. LARGEST machines
_SLOPE_SD = 1 - _SLOPE  # in proportion to machines is one deviation away
_PRIOR_PRECISION = np.diag([1e-9, 1 / _SLOPE_SD**2, *[1 / _ASSUMED_NOISE**2] * _HATS])
_PRIOR_MOMENT = _PRIOR_PRECISION @ np.array([0.0, _SLOPE, *[0.0] * _HATS])


@dataclass(frozen=True, eq=False, slots=True)
class CapacityLaw:
    """Sums over weighted samples: of x x' (``gram``), of x log C (``moment``), of ``squares`` off and of weights."""

    gram: Floats
    moment: Floats
    squares: float = 0.0
    weight: float = 0.0
    largest: int = LARGEST

    @property
    def noise(self) -> float:
        """Relative deviation of one draw."""
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
        """A step whose capacity is known, late or not: rows done per second of useful time.

        ``weight`` below 1 is for steps that share a draw.
        """
        if capacity_per_s <= 0 or machines < 1:
            return self
        mean, doubt = self._posterior()
        x, log_c = _row(machines), math.log(capacity_per_s)
        own = self.noise**2
        # of the squared error only the part that is not our doubt of the curve
        square = (log_c - float(x @ mean)) ** 2 * own / (own + max(float(x @ doubt @ x), 0.0))
        after = self._with(x, log_c, weight)
        return replace(after, squares=self.squares + weight * square, weight=self.weight + weight)

    def late(self, machines: int, capacity_per_s: float) -> CapacityLaw:
        """A step whose capacity is known because it was late: the unlucky ones say nothing of the noise."""
        if capacity_per_s <= 0 or machines < 1:
            return self
        return self._with(_row(machines), math.log(capacity_per_s), 1.0)

    def on_time(self, machines: int, load_per_s: float) -> CapacityLaw:
        """A step whose load was carried: the capacity was above it. Unchanged (itself) where that says nothing."""
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
    """The law of measured (machines, rate) pairs.

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
    """1, log m and the hats; beyond the last of them its height stays."""
    place = np.minimum(log_m / math.log(2), _HATS - 1.0)
    hats = np.maximum(1 - np.abs(place[:, None] - np.arange(float(_HATS))), 0.0)
    return np.column_stack((np.ones_like(log_m), log_m, hats))
