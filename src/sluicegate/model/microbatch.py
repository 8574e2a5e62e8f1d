"""The micro-batch law: batch duration and latency of rows processed in batches, as in Spark Structured Streaming.

A batch of n rows on k processors takes

    b(n) = o + c k + n/(k mu)

o: planning, commit and log writes; c: launching one task; mu: rows per second of one processor. With arrivals at
lambda and batches back to back each batch reads the rows that arrived during the previous one, so its length settles at

    b* = (o + c k)/(1 - rho),  rho = lambda/(k mu) < 1

A row waits for half a batch on average and then through one, but is readable before the commit ends:

    E[T] = 1.5 b* - t_commit            back to back
    E[T] = T/2 + b(lambda T) - t_commit  a batch every T > b* seconds

E[T] is convex in k, so DRS's greedy stays optimal, but unlike Erlang's it has a minimum, at
k* = a + sqrt(a (o + c a)/c), a = lambda/mu. More processors than that make every batch slower.
"""

from __future__ import annotations

import math

from numba import njit

from sluicegate.domain import BatchCosts
from sluicegate.errors import BadInput


@njit(cache=True)
def settled_batch_s(
    arrivals_per_s: float, service_per_s: float, processors: int, overhead_s: float, per_task_s: float
) -> float:
    """b*: the length at which back-to-back batches settle; ``inf`` if they grow without bound."""
    spare = 1.0 - arrivals_per_s / (processors * service_per_s)
    if spare <= 0.0:
        return math.inf
    return (overhead_s + per_task_s * processors) / spare


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
    settled = settled_batch_s(arrivals_per_s, service_per_s, processors, costs.overhead_s, costs.per_task_s)
    if every_s <= settled:
        return max(1.5 * settled - costs.commit_s, 0.0)
    return every_s / 2 + batch_s(arrivals_per_s * every_s, processors, service_per_s, costs) - costs.commit_s


def _check(arrivals_per_s: float, service_per_s: float, processors: int) -> None:
    if not (math.isfinite(arrivals_per_s) and arrivals_per_s >= 0):
        raise BadInput(f"arrival rate {arrivals_per_s}: give a finite rate, 0 or more, per second")
    if not service_per_s > 0 or processors < 1:
        raise BadInput(f"{processors} processors of {service_per_s} rows/s: need at least 1, at a rate above 0")
