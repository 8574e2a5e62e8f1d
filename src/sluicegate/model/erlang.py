"""The M/M/k station, and GI/G/k by Allen and Cunneen's factor (DRS Eq 1 to 3 and 5; Es-Stream Eq 14 to 18).

All of it goes through Erlang B, whose recursion (unlike a^k/k!) can neither overflow nor cancel:

    B(0) = 1,  B(k) = a B(k-1) / (k + a B(k-1)),  a = lambda/mu
    C = B / (1 - rho (1 - B)),  rho = a/k           the probability of waiting
    E[Q] = C / (k mu - lambda)                       the mean wait
    L(k) = lambda E[Q] + a                           the mean number in the station
"""

from __future__ import annotations

import math

from numba import njit

from sluicegate.errors import BadInput


@njit(cache=True)
def fewest_stable(arrivals_per_s: float, service_per_s: float) -> int:
    """The least k with k mu > lambda: floor(lambda/mu) + 1, corrected for rounding in the division."""
    k = int(arrivals_per_s / service_per_s) + 1
    while k > 1 and (k - 1) * service_per_s > arrivals_per_s:
        k -= 1
    while k * service_per_s <= arrivals_per_s:
        k += 1
    return k


@njit(cache=True)
def erlang_b(offered: float, servers: int) -> float:
    """Probability that all servers are busy in a station without a queue.

    >>> round(erlang_b(3.0, 4), 4)
    0.2061
    """
    b = 1.0
    for k in range(1, servers + 1):
        b = offered * b / (k + offered * b)
    return b


@njit(cache=True)
def wait_probability(b: float, offered: float, servers: int) -> float:
    """Erlang C from Erlang B; 1 where the station cannot keep up."""
    rho = offered / servers
    if rho >= 1.0:
        return 1.0
    return b / (1.0 - rho * (1.0 - b))


@njit(cache=True)
def wait_from_b(b: float, arrivals_per_s: float, service_per_s: float, servers: int) -> float:
    """Mean wait, given Erlang B; ``inf`` where the station cannot keep up."""
    spare = servers * service_per_s - arrivals_per_s
    if spare <= 0.0:
        return math.inf
    return wait_probability(b, arrivals_per_s / service_per_s, servers) / spare


def mean_wait_s(
    arrivals_per_s: float, service_per_s: float, servers: int, arrival_scv: float = 1.0, service_scv: float = 1.0
) -> float:
    """Mean time in queue; ``inf`` when the station cannot keep up (DRS Eq 2; Eq 5 with the variabilities).

    >>> round(mean_wait_s(3, 1, servers=4), 4), mean_wait_s(4, 1, servers=4)
    (0.5094, inf)
    """
    _check(arrivals_per_s, service_per_s, servers)
    if arrivals_per_s == 0:
        return 0.0
    b = erlang_b(arrivals_per_s / service_per_s, servers)
    wait = wait_from_b(b, arrivals_per_s, service_per_s, servers)
    return wait if math.isinf(wait) else wait * (arrival_scv + service_scv) / 2


def mean_sojourn_s(
    arrivals_per_s: float, service_per_s: float, servers: int, arrival_scv: float = 1.0, service_scv: float = 1.0
) -> float:
    """Mean wait plus mean service time (DRS Eq 1).

    >>> round(mean_sojourn_s(3, 1, servers=4), 4)
    1.5094
    """
    return mean_wait_s(arrivals_per_s, service_per_s, servers, arrival_scv, service_scv) + 1 / service_per_s


def _check(arrivals_per_s: float, service_per_s: float, servers: int) -> None:
    if not (math.isfinite(arrivals_per_s) and arrivals_per_s >= 0):
        raise BadInput(f"arrival rate {arrivals_per_s}: give a finite rate, 0 or more, per second")
    if not (math.isfinite(service_per_s) and service_per_s > 0):
        raise BadInput(f"service rate {service_per_s}: give a finite rate above 0, per second")
    if servers < 1:
        raise BadInput(f"{servers} servers: a station needs at least 1")
