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

    What an operator's bound cuts off its share is shared among the others. With this the loop that adds single
    processors takes about as many steps as there are operators, not ``total``.
    """
    count = [min(low, cap) for low, cap in zip(least, most, strict=True)]
    need = {i: 1 / rate for i, rate in enumerate(per_processor) if count[i] < most[i]}
    while need:
        whole = sum(need.values())
        if not 0 < whole < math.inf:
            break
        free = total - sum(count) + sum(count[i] for i in need)
        spare = max(free - sum(least[i] for i in need) - len(need), 0)
        shares = {i: int(spare * n / whole) for i, n in need.items()}
        full = [i for i, share in shares.items() if share >= most[i]]
        for i in full or need:
            count[i] = min(max(shares[i], least[i]), most[i])
        if not full:
            return count
        need = {i: n for i, n in need.items() if i not in full}
    for i in need:  # no rows reach these: they get what the others cannot take, in their order
        count[i] += max(min(most[i] - count[i], total - sum(count)), 0)
    return count


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
