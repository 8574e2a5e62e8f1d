"""The probability that load exceeds capacity, and the number of machines that best trades it off against their cost.

    P(k) = mean over steps h of  sum_i weight_i Phi((mean_h + sd_h score_i - capacity_k)/noise_k)
    k* = argmin over k of  k + price P(k)

The load is distributed like the forecast's scores, the capacity normally. Of thousands of sorted scores about 60 are
enough: each of the highest individually, further down one for increasingly many. No k beyond a maximum of the curve is
chosen. As machines stop at once but take steps to start, a lower k is evaluated over the start-up steps too.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_GROWTH = 6  # below the j-th highest score, one point represents j/6 scores; 3 changes costs by 0.3% at most


@njit(cache=True)
def weighed(
    mean: Floats, sd: Floats, scores: Floats, capacity: Floats, noise: Floats, running: int, price: float, wait: int = 0
) -> tuple[int, float, float, float]:
    """The best k, the extra cost of staying at ``running``, and the late probability of staying and of moving.

    Added machines serve after ``wait`` steps, removed ones are gone from the first: a lower k must suffice for all
    steps.

    >>> one, sizes = np.array([10.0]), np.arange(1.0, 31)
    >>> best, regret, stay, move = weighed(one, 0.1 * one, np.array([-1.0, 0.0, 1.0]), sizes, 0.05 * sizes, 10, 100.0)
    >>> best, round(regret), stay > move
    (13, 47, True)
    """
    points, weights = thinned(scores)
    first, half = 1, 0.5 * mean[wait:].max()
    while first < len(capacity) and capacity[first - 1] < half:
        first += 1
    found = _best(mean[wait:], sd[wait:], points, weights, capacity, noise, running, price, first, len(capacity))
    if wait > 0 and found[0] < running:
        return _best(mean, sd, points, weights, capacity, noise, running, price, found[0], running)
    return found


@njit(cache=True)
def _best(
    mean: Floats,
    sd: Floats,
    points: Floats,
    weights: Floats,
    capacity: Floats,
    noise: Floats,
    running: int,
    price: float,
    first: int,
    last: int,
) -> tuple[int, float, float, float]:
    """The same, choosing among ``running`` and the numbers from ``first`` to ``last``."""
    chance = late_chance(mean, sd, points, weights, capacity[running - 1], noise[running - 1])
    best, best_cost, best_chance = running, running + price * chance, chance
    stay, k, top = best_cost, first, -1.0
    while k <= last and k < best_cost:
        if capacity[k - 1] > top:
            top = capacity[k - 1]
            p = late_chance(mean, sd, points, weights, top, noise[k - 1])
            if k + price * p < best_cost:
                best, best_cost, best_chance = k, k + price * p, p
        k += 1
    return best, stay - best_cost, chance, best_chance


@njit(cache=True)
def thinned(scores: Floats) -> tuple[Floats, Floats]:
    """A subset of the ascending ``scores`` in descending order, dense at the top, each with the share it represents.

    >>> points, weights = thinned(np.arange(4000.0))
    >>> points[:2].tolist(), len(points), round(float(weights.sum()), 9)
    ([3999.0, 3998.0], 51, 1.0)
    """
    n = len(scores)
    points, weights = np.zeros(n), np.zeros(n)
    used, upper = 0, n
    while upper > 0:
        lower = max(0, upper - max(1, (n - upper) // _GROWTH))
        points[used] = scores[(lower + upper - 1) // 2]
        weights[used] = (upper - lower) / n
        used += 1
        upper = lower
    return points[:used], weights[:used]


@njit(cache=True)
def late_chance(mean: Floats, sd: Floats, points: Floats, weights: Floats, capacity: float, noise: float) -> float:
    """P(load > capacity), averaged over the steps; ``points`` must be descending."""
    total = 0.0
    spread = max(noise, 1e-9 * capacity, 1e-300)
    for h in range(len(mean)):
        for i in range(len(points)):
            z = (max(mean[h] + sd[h] * points[i], 0.0) - capacity) / spread
            if z < -5.0:
                break
            total += weights[i] * (1.0 if z > 5.0 else 0.5 * math.erfc(-z / math.sqrt(2.0)))
    return total / len(mean)
