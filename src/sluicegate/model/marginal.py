"""The number of instances with the least weighted cost of instances and queue (Es-Stream Eq 8 to 11, algorithm 1).

    z(k) = beta k + (1 - beta) Q(k),   Q(k) the mean number of rows in the operator, M/M/k
    k*:  Q(k*) - Q(k*+1) <= beta/(1-beta) <= Q(k*-1) - Q(k*)

beta, between 0 and 1, is the share of a node that one instance takes. Q is convex in k, so the first k whose next
instance takes no more than beta/(1-beta) rows off the queue is the best one.

Our reading where the paper errs: the search starts at floor(lambda/mu) + 1, as the printed floor(lambda/mu) has an
infinite queue; line 7 compares with Q(k-1) - Q(k) (Eq 11), not with the negative of it, and Q(k-1) is infinite at
the smallest k; mu is the mean of one instance (Eq 15), not the sum over instances (Eq 7).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from numba import njit

from sluicegate.domain.topology import require, require_number
from sluicegate.model.erlang import erlang_b, fewest_stable, wait_from_b

_MOST = 2**53
"""Integers above it are not exact as floats."""


@dataclass(frozen=True, slots=True)
class BestServers:
    """k*, and the two gains of Eq 11 around it, in rows by which the queue gets shorter.

    ``last_gain`` is the gain of the k*-th instance (``inf`` if one fewer could not keep up); ``next_gain`` is that of
    one more. ``keeps_up`` is false, and both gains are infinite, if ``most`` instances are too few.
    """

    servers: int
    last_gain: float
    next_gain: float
    price: float
    keeps_up: bool = True


def best_servers(arrivals_per_s: float, service_per_s: float, beta: float, most: int = 1_000_000) -> BestServers:
    """The k of at most ``most`` with the least z(k): algorithm 1, in one pass of Erlang's recursion.

    >>> found = best_servers(3, 1, beta=0.25)
    >>> found.servers, round(found.last_gain, 3), round(found.next_gain, 3), round(found.price, 3)
    (5, 1.174, 0.255, 0.333)
    """
    price = _price(beta)
    require(most >= 1, f"most instances is {most}: give at least 1")
    require_number(arrivals_per_s, "arrival rate")
    require_number(service_per_s, "service rate", above=True)
    if arrivals_per_s / service_per_s >= min(most, _MOST):
        return BestServers(most, math.inf, math.inf, price, keeps_up=False)
    servers, last_gain, next_gain = _search(arrivals_per_s, service_per_s, price, min(most, _MOST))
    if servers > most:
        return BestServers(most, math.inf, math.inf, price, keeps_up=False)
    return BestServers(servers, last_gain, next_gain, price)


def _price(beta: float) -> float:
    require(0 < beta < 1, f"beta is {beta}: give the share of a node one instance takes, between 0 and 1")
    return beta / (1 - beta)


@njit(cache=True)
def _search(arrivals_per_s: float, service_per_s: float, price: float, most: int) -> tuple[int, float, float]:
    offered = arrivals_per_s / service_per_s
    k = fewest_stable(arrivals_per_s, service_per_s)
    b = erlang_b(offered, k)
    # The mean number of rows in service is the same at every k: comparing queues alone avoids cancellation.
    queue = arrivals_per_s * wait_from_b(b, arrivals_per_s, service_per_s, k)
    last_gain = math.inf
    while True:
        b = offered * b / (k + 1 + offered * b)
        shorter = arrivals_per_s * wait_from_b(b, arrivals_per_s, service_per_s, k + 1)
        next_gain = queue - shorter
        if next_gain <= price or k >= most:
            return k, last_gain, next_gain
        k, queue, last_gain = k + 1, shorter, next_gain
