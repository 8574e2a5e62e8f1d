"""Fits the micro-batch law online: o, c and 1/mu from (rows, k, duration) of past batches.

The law is linear in its coefficients, d = o + c k + (1/mu)(n/k), so a Bayesian linear regression with forgetting fits
it:

    A <- g A + x x^T,   v <- g v + x d,   theta = (A + A_0)^-1 (v + A_0 theta_0),   x = (1, k, n/k)

theta_0 is the prior from the topology and A_0 its weight: a hundredth of a batch, which keeps o and c identifiable
while k has never changed and 1 and k cannot be distinguished; for o and c at least (residual/theta_0)^2, a prior with a
standard deviation equal to its mean, so that a few noisy batches cannot shift cost between o, c and 1/mu. The posterior
gives each coefficient its standard error. All operators are fitted in one compiled call.

Where the tasks' own run times are measured (w in total, so w/k = t + (1/mu)(n/k)), 1/mu is fitted from them alone, by
the same regression, and o and c from the rest of the batch: planning and commits vary from batch to batch by more than
the rows of a light operator cost, and would hide that cost.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sluicegate.domain import Batch, Operator

Floats = NDArray[np.float64]

_FORGET = 0.98
_PRIOR_BATCHES = 0.01
_LEAST_S = 1e-6
_SUMS = 20


@dataclass(frozen=True, slots=True)
class BatchLaw:
    """The fitted law of one operator; ``service_rsd`` is the relative standard error of 1/mu."""

    overhead_s: float
    per_task_s: float
    service_per_s: float
    service_rsd: float
    batches: float


@dataclass(frozen=True, slots=True, eq=False)
class BatchFits:
    """Running sums for every operator, with forgetting.

    A (3x3), v, sum of d^2, batches seen; then of the tasks' run times: batches, n/k, (n/k)^2, w/k, (n/k)(w/k), (w/k)^2.
    """

    names: tuple[str, ...]
    prior: Floats
    sums: Floats
    forget: float = _FORGET

    @classmethod
    def start(cls, operators: tuple[Operator, ...], forget: float = _FORGET) -> BatchFits:
        """The prior from the operators' declared costs and rates. ``forget`` = 1 weighs all batches equally."""
        prior = np.array(
            [
                (o.batch.overhead_s, o.batch.per_task_s, 1 / o.service_per_s)
                if o.batch
                else (0.1, 0.02, 1 / o.service_per_s)
                for o in operators
            ]
        )
        return cls(tuple(o.name for o in operators), prior, np.zeros((len(operators), _SUMS)), forget)

    def learn(self, batches: Mapping[str, tuple[Batch, ...]]) -> BatchFits:
        """The fits updated with these finished batches."""
        if not any(batches.values()):
            return self
        index = {name: i for i, name in enumerate(self.names)}
        rows = [
            (index[name], b.processors, b.rows, b.duration_s, math.nan if b.work_s is None else b.work_s)
            for name, found in batches.items()
            for b in found
            if name in index and b.processors > 0 and b.rows > 0 and b.duration_s > 0
        ]
        if not rows:
            return self
        sums = self.sums.copy()
        _take_in(sums, np.array(rows, dtype=np.float64), self.forget)
        return BatchFits(self.names, self.prior, sums, self.forget)

    def law(self, name: str) -> BatchLaw:
        """The fitted law of one operator.

        >>> from sluicegate.domain import BatchCosts
        >>> fits = BatchFits.start((Operator("a", 400.0, batch=BatchCosts(0.2, 0.05)),))
        >>> sizes = [(n, k) for k in (1, 2, 4, 8) for n in range(100, 2000, 50)]
        >>> seen = tuple(Batch(n, k, 0.137 + 0.029 * k + n / (k * 500)) for n, k in sizes)
        >>> law = fits.learn({"a": seen}).law("a")
        >>> round(law.overhead_s, 2), round(law.per_task_s, 3), round(law.service_per_s)
        (0.14, 0.029, 500)
        """
        return self.laws()[name]

    def laws(self) -> dict[str, BatchLaw]:
        """The law of each operator: fitted if it has finished a batch, else its declared figures."""
        solved = _solve_all(self.sums, self.prior, _PRIOR_BATCHES).tolist()
        return {
            name: BatchLaw(max(o, _LEAST_S), c, 1 / slope, min(error / slope, 1.0), seen)
            for name, (o, c, slope, error, seen) in zip(self.names, solved, strict=True)
        }


@njit(cache=True)
def _take_in(sums: Floats, rows: Floats, forget: float) -> None:
    for r in range(len(rows)):
        i, k, n, d = int(rows[r, 0]), rows[r, 1], rows[r, 2], rows[r, 3]
        x = (1.0, k, n / k)
        for j in range(sums.shape[1]):
            sums[i, j] *= forget
        for a in range(3):
            for b in range(3):
                sums[i, 3 * a + b] += x[a] * x[b]
            sums[i, 9 + a] += x[a] * d
        sums[i, 12] += d * d
        sums[i, 13] += 1.0
        y = rows[r, 4] / k
        if np.isfinite(y):
            for j, term in enumerate((1.0, x[2], x[2] * x[2], y, x[2] * y, y * y)):
                sums[i, 14 + j] += term


@njit(cache=True)
def _solve_all(sums: Floats, prior: Floats, weight: float) -> Floats:
    """Per operator: o, c, 1/mu, standard error of 1/mu, batches seen."""
    out = np.empty((len(sums), 5))
    for i in range(len(sums)):
        seen = sums[i, 13]
        if seen == 0.0:
            out[i] = np.array([prior[i, 0], prior[i, 1], prior[i, 2], 0.25 * prior[i, 2], 0.0])
            continue
        slope, slope_error = _slope_of_tasks(sums[i, 14:], prior[i, 2], weight)
        matrix, vector = sums[i, :9].copy().reshape(3, 3), sums[i, 9:12]
        firm = weight * np.array([1.0, 1.0, max(matrix[2, 2] / seen, 1e-12)])
        aim = prior[i].copy()
        if slope > 0.0:
            # 1/mu is known from the task run times: a very strong prior fixes it there
            firm[2], aim[2] = 1e9 * max(matrix[2, 2], 1e-12), slope
        residual = 0.0
        for _ in range(2):
            for j in range(2):
                if prior[i, j] > 1e-9:
                    firm[j] = max(firm[j], (residual / prior[i, j]) ** 2)
            system, right = matrix + np.diag(firm), vector + firm * aim
            inverse = _inverse(system)
            theta = _not_negative(system, right, inverse @ right)
            theta[2] = max(theta[2], 1e-12)
            left = sums[i, 12] - 2.0 * np.sum(theta * vector) + np.sum(theta * (matrix @ theta))
            residual = math.sqrt(max(left, 0.0) / max(seen - 3.0, 1.0))
        error = slope_error if slope > 0.0 else residual * math.sqrt(max(inverse[2, 2], 0.0))
        out[i] = np.array([theta[0], theta[1], theta[2], error, seen])
    return out


@njit(cache=True)
def _slope_of_tasks(sums: Floats, prior: float, weight: float) -> tuple[float, float]:
    """1/mu and its standard error from w/k = t + (1/mu)(n/k); zeros where no task was timed."""
    count, x, xx, y, xy, yy = sums[0], sums[1], sums[2], sums[3], sums[4], sums[5]
    if count < 1.0 or xx <= 0.0:
        return 0.0, 0.0
    prior = min(prior, y / max(x, 1e-300))  # a row costs at most what the tasks took per row: a guess must not slow it
    # prior: t near zero and 1/mu near the topology's value, each with the weight of a hundredth of a batch
    a, c = count * (1.0 + weight), xx * (1.0 + weight / count)
    slope = (a * (xy + weight * xx / count * prior) - x * y) / max(a * c - x * x, 1e-300)
    a_row_at_most = y / max(x, 1e-300)
    slope = max(slope, 1e-3 * a_row_at_most, 1e-12)
    start = max((y - slope * x) / a, 0.0)
    left = yy - 2.0 * (start * y + slope * xy) + start * start * count + 2.0 * start * slope * x + slope * slope * xx
    residual = math.sqrt(max(left, 0.0) / max(count - 2.0, 1.0))
    error = residual * math.sqrt(a / max(a * c - x * x, 1e-300))
    # a cost below its own standard error is not known: slow first batches of few rows would make rows seem free
    return max(slope, min(error, a_row_at_most)), error


@njit(cache=True)
def _inverse(m: Floats) -> Floats:
    """The inverse of a 3x3 matrix by cofactors: ten times as fast as a library call at this size."""
    a, b, c, d, e, f, g, h, i = m[0, 0], m[0, 1], m[0, 2], m[1, 0], m[1, 1], m[1, 2], m[2, 0], m[2, 1], m[2, 2]
    cofactors = np.array(
        [
            [e * i - f * h, c * h - b * i, b * f - c * e],
            [f * g - d * i, a * i - c * g, c * d - a * f],
            [d * h - e * g, b * g - a * h, a * e - b * d],
        ]
    )
    inverse: Floats = cofactors / (a * cofactors[0, 0] + b * cofactors[1, 0] + c * cofactors[2, 0])
    return inverse


@njit(cache=True)
def _not_negative(system: Floats, right: Floats, theta: Floats) -> Floats:
    """Least squares with negative coefficients set to zero and the rest solved again, up to twice."""
    held = np.zeros(3, dtype=np.bool_)
    for _ in range(2):
        if theta.min() >= 0.0:
            break
        held |= theta < 0.0
        part, side = system.copy(), right.copy()
        for j in range(3):
            if held[j]:
                part[j, :] = 0.0
                part[:, j] = 0.0
                part[j, j] = 1.0
                side[j] = 0.0
        theta = _inverse(part) @ side
    out: Floats = np.maximum(theta, 0.0)
    return out
