"""A number of processors for the whole pipeline, spread over its operators so that it carries the highest rate.

Policies that know only how much in all (executors, machines) use it. Operator i carries k_i mu_i / v_i rows of the
pipeline's rate, v_i its visits; the next processor always goes to the operator that carries least, which maximises
the least of them.
"""

from __future__ import annotations

import heapq
import math

from sluicegate.domain import Limits, Topology
from sluicegate.model.traffic import visits


def spread(topology: Topology, total: int, limits: Limits | None = None) -> dict[str, int]:
    """``total`` processors over the operators; each has its least, so a smaller ``total`` is raised to their sum.

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
    count = _sure_of(total, per_processor, limits.least, most)
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


def _sure_of(total: int, per_processor: list[float], least: int, most: list[int]) -> list[int]:
    """What every operator gets in any case: its whole share of what is left when each has one more than its least.

    It keeps the rest, one processor at a time, as short as the list of operators, however large the total.
    """
    need = [1 / rate for rate in per_processor]
    spare, whole = max(total - len(need) * (least + 1), 0), sum(need)
    shares = [int(spare * n / whole) if 0 < whole < math.inf else 0 for n in need]
    return [min(max(share, least), cap) for share, cap in zip(shares, most, strict=True)]


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
