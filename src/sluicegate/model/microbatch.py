"""The micro-batch law: batch duration and latency of rows processed in batches, as in Spark Structured Streaming.

A batch of n rows on k processors takes

    b(n) = B + m n,   B = o + c k,   m = 1/(k mu)

o: planning, commit and log writes; c: launching one task; mu: rows per second of one processor. With Poisson arrivals
at lambda and batches back to back each batch reads the N rows that arrived during the previous one, or waits for the
first if there was none (probability p0), so with rho = lambda m < 1 the moments of its length settle at

    E[b]   = (B + m p0)/(1 - rho)
    E[b^2] = (B^2 + (2 B m + m^2) R)/(1 - rho^2),   R = lambda E[b] + p0   rows a batch

p0 = E[exp(-lambda b)] follows from the transform of b, with u_0 = 1, u_i+1 = 1 - exp(-rho u_i):

    p0 = exp(-lambda B sum of all u_i)/(1 + sum of u_i exp(-lambda B (u_0 + ... + u_i-1)), i >= 1)

A row that arrives during a batch (a share q = lambda E[b]/R of all rows) sees a longer one than the mean batch, of
S = E[b^2]/E[b]: it waits for half of that and is then in a batch with the rows that came meanwhile, itself among them.
It is readable before the commit ends:

    E[T] = B + m + q (1/2 + rho) S - t_commit         back to back
    E[T] = B + m + w(lambda T) (1/2 + rho) T - t_commit     a batch every T > S seconds

With many rows in T w is 1. With few a batch often starts late, for lack of rows, and one after it may start earlier by
as much (at most T): rows then wait less, and one that comes alone for nothing (``paced_share``).

Where batches have many rows q is 1, m is small and S is b* = B/(1 - rho): E[T] = 1.5 b* - t_commit.

Up to its minimum E[T] is convex in k, so DRS's greedy stays optimal; for batches of many rows the minimum is at
k* = a + sqrt(a (o + c a)/c), a = lambda/mu. More processors than that make every batch slower.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from numba import njit
from scipy.special import gammainc

from sluicegate.domain import BatchCosts
from sluicegate.errors import BadInput

_NEVER = 40.0
"""Expected rows, counted with those of the batch itself, beyond which a batch without any row has no weight: e^-40."""
_SLOW = 0.9
"""rho from which the u fall so slowly that their sums end as integrals, at ``_FEW`` instead of at ``_NONE``."""
_FEW, _NONE = 1e-3, 1e-12
_SURE = 1e-6
"""Share of S below which what follows the wait is taken for certain."""
_SMALL = 1e-3
"""x below which differences of nearly equal numbers are replaced by the first terms of their series."""


@njit(cache=True)
def settled_batch_s(
    arrivals_per_s: float, service_per_s: float, processors: int, overhead_s: float, per_task_s: float
) -> float:
    """b*: the length at which batches of many rows settle back to back; ``inf`` if they grow without bound."""
    spare = 1.0 - arrivals_per_s / (processors * service_per_s)
    if spare <= 0.0:
        return math.inf
    return (overhead_s + per_task_s * processors) / spare


@njit(cache=True)
def empty_share(rows: float, busy: float) -> float:
    """p0: the share of back-to-back batches during which no row arrives; ``rows`` is lambda B, ``busy`` is rho.

    >>> round(empty_share(1.0, 0.5), 4), empty_share(0.0, 0.0), empty_share(100.0, 0.5)
    (0.1435, 1.0, 0.0)
    """
    u, expected, weighted = 1.0, 0.0, 0.0
    least = _FEW if busy > _SLOW else _NONE
    while u > least:
        expected += rows * u
        if expected > _NEVER:
            return 0.0
        u = -math.expm1(-busy * u)
        weighted += u * math.exp(-expected)
    if busy > _SLOW:
        # 1/u_i+1 = 1/(rho u_i) + 1/2 for small u, so that u_i = 1/((1/u + c) rho^-i - c), c = rho/(2 (1 - rho))
        slower, decay = 0.5 * busy / (1.0 - busy), -math.log(busy)
        rest = math.log1p(slower * u) / (decay * slower) + 0.5 * u
        more = rows * (rest - u)
        # the sum over i of u_i exp(-rows x their sum so far), as the integral over that sum; u itself is in it already
        weighted += math.exp(-expected - rows * u) * (-math.expm1(-more) / rows if more > 1e-9 else rest - u)
        expected += rows * rest
    return math.exp(-expected) / (1.0 + weighted)


@njit(cache=True)
def back_to_back(
    arrivals_per_s: float, service_per_s: float, processors: int, overhead_s: float, per_task_s: float
) -> tuple[float, float, float, float]:
    """Mean and variance of the time to the end of the batch a row is in, q, and S; ``inf`` if batches cannot keep up.

    Lengths are in units of B: rows that take very much or very little of it cannot overflow.
    """
    own, each = overhead_s + per_task_s * processors, 1.0 / (processors * service_per_s)
    busy = arrivals_per_s * each
    if not busy < 1.0:
        return math.inf, math.inf, 1.0, math.inf
    rows, row = arrivals_per_s * own, each / own
    empty = empty_share(rows, busy)
    first = (1.0 + row * empty) / (1.0 - busy)
    read = rows * first + empty
    second = (1.0 + (2.0 + row) * row * read) / (1.0 - busy * busy)
    third = (
        1.0
        + 3.0 * row * read
        + 3.0 * row * row * (read + rows * rows * second)
        + row**3 * (read + 3.0 * rows * rows * second)
    ) / (1.0 - busy**3)
    seen, during = second / first, rows * first / read
    # of rows that arrive during a batch of length I (density proportional to I): T = U I + B + m (1 + N), N given I
    varies = max(third / first - seen * seen, 0.0)
    spread = (third / first) / 12.0 + row * busy * seen + (0.5 + busy) ** 2 * varies
    beyond = (0.5 + busy) * seen
    mean = 1.0 + row + during * beyond
    variance = during * spread + during * (1.0 - during) * beyond * beyond
    return own * mean, own * own * variance, during, own * seen


def batch_s(rows: float, processors: int, service_per_s: float, costs: BatchCosts) -> float:
    """b(n): the duration of a batch of ``rows``.

    >>> round(batch_s(1000, 4, 500.0, BatchCosts(0.137, 0.029)), 3)
    0.753
    """
    return costs.overhead_s + costs.per_task_s * processors + rows / (processors * service_per_s)


def mean_sojourn_s(
    arrivals_per_s: float, service_per_s: float, processors: int, costs: BatchCosts, every_s: float = 0.0
) -> float:
    """Mean time from a row's arrival until it can be read downstream; ``inf`` where batches cannot keep up.

    >>> costs = BatchCosts(overhead_s=0.137, per_task_s=0.029)
    >>> round(mean_sojourn_s(800, 500.0, 4, costs), 3), mean_sojourn_s(2000, 500.0, 4, costs)
    (0.633, inf)
    """
    _check(arrivals_per_s, service_per_s, processors)
    mean, _, _, seen = back_to_back(arrivals_per_s, service_per_s, processors, costs.overhead_s, costs.per_task_s)
    if every_s > seen:
        busy, one = arrivals_per_s / (processors * service_per_s), batch_s(1, processors, service_per_s, costs)
        mean = max(mean, one + (0.5 + busy) * every_s * paced_share(arrivals_per_s * every_s))
    return max(mean - costs.commit_s, 0.0)


@njit(cache=True)
def paced_share(rows: float) -> float:
    """w: the length of the waits of paced batches, as rows see it, over the pace T; ``rows`` is x = lambda T.

    After a batch that found a row waiting the next is due T later, else earlier by the time E for which it waited for
    its row: W = T, or W = T - E, not below 0. With P the share of batches of the second kind,
    w = lambda E[W^2]/((lambda E[W] + P) T).

    >>> [round(paced_share(x), 3) for x in (0.0, 0.5, 3.0, 30.0)]
    [0.0, 0.126, 0.972, 1.0]
    """
    if rows <= 0.0:
        return 0.0
    none = math.exp(-rows)
    late = none / (1.0 - rows * none)  # as P = e^-x (1 - P) + (1 + x) e^-x P
    if rows > _SMALL:
        first = 1.0 + math.expm1(-rows) / rows
        second = 1.0 - 2.0 * first / rows
    else:
        first, second = rows / 2.0 - rows * rows / 6.0, rows / 3.0 - rows * rows / 12.0
    return rows * (1.0 - late + late * second) / (rows * (1.0 - late + late * first) + late)


def wait_tail(during: float, seen_s: float, beyond_s: float, variance_s2: float) -> Callable[[float], float]:
    """P(T > t) of a row, t after the least time B + m: an even wait over S, then the rows that came meanwhile.

    ``during`` is q, ``beyond_s`` the mean of T - B - m of rows that arrive during a batch and ``variance_s2`` its
    variance, of which an even wait has S/2 and S^2/12. The rest is taken for a gamma distribution, whose distribution
    function F has the integral x F(x; a) - a theta F(x; a + 1).
    """
    rest, spread = beyond_s - 0.5 * seen_s, variance_s2 - seen_s * seen_s / 12.0
    if rest <= _SURE * seen_s or spread <= (_SURE * seen_s) ** 2:
        return lambda t: during * min(max(1.0 - (t - rest) / seen_s, 0.0), 1.0)
    shape, scale = rest * rest / spread, spread / rest

    def area(x: float) -> float:
        if x <= 0.0:
            return 0.0
        return x * float(gammainc(shape, x / scale)) - rest * float(gammainc(shape + 1.0, x / scale))

    return lambda t: during * (1.0 - (area(t) - area(t - seen_s)) / seen_s)


def _check(arrivals_per_s: float, service_per_s: float, processors: int) -> None:
    if not (math.isfinite(arrivals_per_s) and arrivals_per_s >= 0):
        raise BadInput(f"arrival rate {arrivals_per_s}: give a finite rate, 0 or more, per second")
    if not service_per_s > 0 or processors < 1:
        raise BadInput(f"{processors} processors of {service_per_s} rows/s: need at least 1, at a rate above 0")
