"""The greedy allocation of DRS: the next processor goes where it cuts E[T] most.

Gain of a processor at operator i: lambda_i (E[T_i](k_i) - E[T_i](k_i + 1)). As E[T_i] is convex in k_i under every law
sluicegate uses, the greedy is optimal for each total, and its allocations are nested: one pass with a heap gives all
totals, in O((N + K) log N). Erlang B is updated by one step of its recursion per processor. Under the micro-batch
law the gain turns negative at k*; the greedy never goes beyond.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass

import numpy as np
from numba import njit

from sluicegate.domain import Limits
from sluicegate.domain.figures import rate
from sluicegate.errors import Infeasible
from sluicegate.model.erlang import erlang_b, fewest_stable
from sluicegate.model.stations import Counts, Floats, Laws, Stations, varying_s


@dataclass(frozen=True, slots=True, eq=False)
class GreedyPath:
    """Greedy allocations for every total: ``start``, then one processor to ``steps[0]``, ``steps[1]``, ..."""

    start: Counts
    steps: Counts

    def after(self, count: int) -> Counts:
        """The allocation ``count`` steps along."""
        return self.start + np.bincount(self.steps[:count], minlength=len(self.start))


def smallest(stations: Stations, limits: Limits) -> Counts:
    """The fewest processors that keep every operator stable, k_i = floor(lambda_i/mu_i) + 1, within ``limits``."""
    offered, most = stations.offered, _most(stations, limits)
    for i in np.flatnonzero(offered >= most):
        name = stations.names[i]
        raise Infeasible(
            f"operator {name!r} needs more than {offered[i]:,.4g} processors for "
            f"{rate(stations.laws.arrivals_per_s[i])} at {rate(stations.laws.service_per_s[i])} each, "
            f"above its limit of {most[i]:,}: raise the limit or lower the rate"
        )
    stable = _stable(stations.laws.arrivals_per_s, stations.laws.service_per_s)
    return np.maximum(stable, [limits.least_for(n) for n in stations.names] if limits.least_of else limits.least)


def greedy_path(stations: Stations, limits: Limits, budget: int, until_mean_s: float | None = None) -> GreedyPath:
    """Add processors until ``budget`` in all, until E[T] <= ``until_mean_s``, or until no more helps.

    >>> from sluicegate.domain import Edge, Operator, Topology
    >>> two = Topology("t", (Operator("a", 2.0), Operator("b", 3.0)), (Edge("source", "a"), Edge("a", "b")))
    >>> path = greedy_path(Stations.of(two, np.array([5.0, 5.0]), 5.0), Limits(), budget=7)
    >>> path.start.tolist(), path.after(len(path.steps)).tolist()
    ([3, 2], [4, 3])
    """
    start = smallest(stations, limits)
    target = -math.inf
    if until_mean_s is not None:
        fixed = stations.offered[stations.laws.overhead_s == 0].sum()
        target = until_mean_s * stations.outside_per_s - float(fixed)
    steps = max(budget - int(start.sum()), 0)
    return GreedyPath(start, _grow(stations.laws, start, _most(stations, limits), steps, target))


def ample(stations: Stations, limits: Limits) -> int:
    """A total above which more have no effect: the least, four times the offered load and 64 more per operator."""
    least = sum(limits.least_for(name) for name in stations.names)
    most = sum(limits.most_for(name) for name in stations.names)
    return int(min(4 * stations.offered.sum() + 64 * len(stations.names) + least, float(most)))


def _most(stations: Stations, limits: Limits) -> Counts:
    if not limits.most_of:
        return np.full(len(stations.names), limits.most, dtype=np.int64)
    return np.array([limits.most_for(name) for name in stations.names], dtype=np.int64)


@njit(cache=True)
def _stable(arrivals: Floats, service: Floats) -> Counts:
    out = np.empty(len(arrivals), dtype=np.int64)
    for i in range(len(arrivals)):
        out[i] = fewest_stable(arrivals[i], service[i])
    return out


@njit(cache=True)
def _grow(laws: Laws, start: Counts, most: Counts, steps: int, target: float) -> Counts:
    """The operator that gets each next processor; stops when sum of weight_i x (the part that k changes) <= target."""
    k, b = start.copy(), np.ones(len(start))
    total = 0.0
    heap = [(0.0, 0.0, 0)]
    heap.pop()
    for i in range(len(k)):
        if laws.arrivals_per_s[i] > 0.0:
            b[i] = erlang_b(laws.arrivals_per_s[i] / laws.service_per_s[i], k[i])
            total += laws.passing_per_s[i] * varying_s(laws, i, b[i], k[i])
            if k[i] < most[i]:
                heap.append(_next(laws, i, b[i], k[i]))
    heapq.heapify(heap)
    order = np.empty(steps, dtype=np.int64)
    taken = 0
    while taken < steps and total > target and len(heap) > 0:
        loss, _, i = heap[0]
        if loss >= 0.0 and laws.overhead_s[i] > 0.0:
            heapq.heappop(heap)
            continue
        offered = laws.arrivals_per_s[i] / laws.service_per_s[i]
        k[i] += 1
        b[i] = offered * b[i] / (k[i] + offered * b[i])
        total += loss
        order[taken] = i
        taken += 1
        if k[i] < most[i]:
            heapq.heapreplace(heap, _next(laws, i, b[i], k[i]))
        else:
            heapq.heappop(heap)
    return order[:taken]


@njit(cache=True)
def _next(laws: Laws, i: int, b: float, k: int) -> tuple[float, float, int]:
    """Minus the gain of one more processor; ties (gains below the smallest float) go to the busiest operator."""
    offered = laws.arrivals_per_s[i] / laws.service_per_s[i]
    ahead = offered * b / (k + 1 + offered * b)
    gain = laws.passing_per_s[i] * (varying_s(laws, i, b, k) - varying_s(laws, i, ahead, k + 1))
    return (-gain, -offered / k, i)
