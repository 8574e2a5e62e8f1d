"""How many rows one batch of an operator may take, so that a backlog is worked off in batches that end in time.

Unlimited, a backlog becomes one batch of minutes, in which nothing can be moved: processors that come meanwhile are
idle until it ends. With the law b = o + c k + n/(k mu), own = o + c k and rho = lambda/(k mu), under a promise of D
seconds and at a pace of T, a batch takes at most

    n = max((D - own) k mu, own k mu (1 + rho)/(1 - rho), 2 lambda T)

rows: what k processors process in D, but at least so many that half of the capacity which the load leaves drains the
backlog, where the overhead of batches is most of D (for rho up to 0.95; above it more processors are needed), and
twice the rows that come between two paced batches.
"""

from __future__ import annotations

import math

from sluicegate.domain import Situation
from sluicegate.model.stations import KEEPS_UP


def most_rows(situation: Situation | None, name: str, processors: int, pace_s: float, usual: int) -> int:
    """The limit, at most ``usual``, which it is without a promise; with two digits, so that it seldom changes.

    >>> from sluicegate.domain import BatchCosts, Edge, Goal, Observation, Operator, Topology
    >>> one = Topology("t", (Operator("a", 100.0, batch=BatchCosts(0.5, 0.0)),), (Edge("source", "a"),))
    >>> late = Situation(0.0, one, Observation(0.0, 50.0, {"a": 2}), 50.0, {"a": 50.0}, Goal(mean_s=5.0))
    >>> [most_rows(late, "a", k, 0.0, usual=10_000) for k in (2, 8, 64)]
    [900, 3600, 10000]
    """
    bounds = situation.goal.latency_bounds.values() if situation is not None else ()
    if situation is None or not bounds or (costs := situation.topology.operator(name).batch) is None:
        return usual
    own_s = costs.overhead_s + costs.per_task_s * processors
    capacity_per_s = processors * situation.topology.operator(name).service_per_s
    arrivals_per_s = situation.operator_arrivals_per_s.get(name, 0.0)
    rho = min(arrivals_per_s / capacity_per_s, KEEPS_UP)
    lasts_s = max(min(bounds) - own_s, own_s * (1 + rho) / (1 - rho))
    rows = max(lasts_s * capacity_per_s, 2 * arrivals_per_s * pace_s, 1.0)
    step = int(10 ** max(math.floor(math.log10(rows)) - 1, 0))
    return min(math.ceil(rows / step) * step, usual)
