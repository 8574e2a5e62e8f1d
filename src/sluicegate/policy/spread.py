"""Spreads a total of processors over the operators so that the pipeline carries the highest rate.

Used by policies that decide only a total (executors, machines). Operator i carries a pipeline rate of k_i mu_i / v_i,
v_i its visits; the next processor always goes to the operator that carries least, which maximises the minimum.
"""

from __future__ import annotations

import heapq
import math

from sluicegate.domain import Limits, Topology
from sluicegate.model.traffic import visits


def spread(topology: Topology, total: int, limits: Limits | None = None) -> dict[str, int]:
    """Spread ``total`` processors over the operators; each gets the least, so a smaller ``total`` is exceeded.

    >>> from sluicegate.domain import Edge, Operator
    >>> two = Topology("t", (Operator("a", 10.0), Operator("b", 5.0)), (Edge("source", "a"), Edge("a", "b")))
    >>> spread(two, 6)
    {'a': 2, 'b': 4}
    """
    limits = limits or Limits()
    per_processor = [
        operator.service_per_s / v if v > 0 else math.inf
        for operator, v in zip(topology.operators, visits(topology).tolist(), strict=True)
    ]
    most = [limits.most_for(name) for name in topology.names]
    least = [limits.least_for(name) for name in topology.names]
    count = _sure_of(total, per_processor, least, most)
    heap = [(count[i] * rate, i) for i, rate in enumerate(per_processor) if count[i] < most[i]]
    heapq.heapify(heap)
    for _ in range(total - sum(count)):
        if not heap:
            break
        i = heap[0][1]
        count[i] += 1
        if count[i] < most[i]:
            heapq.heapreplace(heap, (count[i] * per_processor[i], i))
        else:
            heapq.heappop(heap)
    return dict(zip(topology.names, count, strict=True))


def _sure_of(total: int, per_processor: list[float], least: list[int], most: list[int]) -> list[int]:
    """A lower bound of each operator's count: its share, rounded down, of the total less its least and one more.

    With it the loop that adds single processors takes about as many steps as there are operators, not ``total``.
    """
    need = [1 / rate for rate in per_processor]
    spare, whole = max(total - sum(least) - len(need), 0), sum(need)
    shares = [int(spare * n / whole) if 0 < whole < math.inf else 0 for n in need]
    return [min(max(share, low), cap) for share, low, cap in zip(shares, least, most, strict=True)]


def sustained_per_s(topology: Topology, processors: dict[str, int]) -> float:
    """The highest pipeline rate this allocation carries: the least over operators of k mu / v.

    >>> from sluicegate.domain import Edge, Operator
    >>> two = Topology("t", (Operator("a", 10.0), Operator("b", 5.0)), (Edge("source", "a"), Edge("a", "b")))
    >>> sustained_per_s(two, {"a": 2, "b": 3})
    15.0
    """
    carried = (
        processors[operator.name] * operator.service_per_s / v
        for operator, v in zip(topology.operators, visits(topology).tolist(), strict=True)
        if v > 0
    )
    return min(carried, default=math.inf)
