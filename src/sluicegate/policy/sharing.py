"""Divides too few processors among several queries: the next one goes where it reduces latency most.

Each query has its own latency bound, so the measure is its predicted mean over that bound. Each query starts with one
processor; the next goes first to a query that cannot keep up (the most overloaded), then to the one whose ratio it cuts
most. No query gets more than it wants. Under the micro-batch law the ratio is convex in k, so the greedy is optimal.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Claim:
    """The processors that one query wants, its latency bound, and its predicted mean with k processors."""

    want: int
    bound_s: float
    mean_s: Callable[[int], float]
    offered: float = 0.0
    """Processors that its rows keep busy: lambda/mu."""


def shared(claims: Mapping[str, Claim], budget: int) -> dict[str, int]:
    """Processors of each query: at most ``budget`` in total, but always at least one each.

    >>> fast = Claim(4, 1.0, lambda k: 1.0 / k)
    >>> slow = Claim(4, 10.0, lambda k: 1.0 / k)
    >>> shared({"fast": fast, "slow": slow}, 5), shared({"fast": fast, "slow": slow}, 9)
    ({'fast': 4, 'slow': 1}, {'fast': 4, 'slow': 4})
    """
    if sum(claim.want for claim in claims.values()) <= budget:
        return {name: claim.want for name, claim in claims.items()}
    given = {name: min(1, claim.want) for name, claim in claims.items()}
    order = {name: number for number, name in enumerate(claims)}
    best = [(_cost(claims[name], k), order[name], name) for name, k in given.items() if k < claims[name].want]
    heapq.heapify(best)
    left = budget - sum(given.values())
    while left > 0 and best:
        _, place, name = heapq.heappop(best)
        given[name] += 1
        left -= 1
        if given[name] < claims[name].want:
            heapq.heappush(best, (_cost(claims[name], given[name]), place, name))
    return given


def _cost(claim: Claim, have: int) -> tuple[float, float]:
    """The negated gain of one more processor, as a heap key (least first)."""
    now_s, then_s = claim.mean_s(have), claim.mean_s(have + 1)
    if not math.isfinite(now_s):
        return -claim.offered / max(have, 1), -math.inf
    return 0.0, -(now_s - then_s) / claim.bound_s
