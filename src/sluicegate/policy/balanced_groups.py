"""Key groups by measured load: how the rows of a stateful operator are redirected, as a key must keep its owner.

Longest processing time first: the heaviest group goes to the instance with the least load so far. The largest load
is at most 4/3 - 1/(3k) times the least possible (Graham 1969). Instances are then renamed so that as much load as
possible stays where it is.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence

import numpy as np
from scipy.optimize import linear_sum_assignment

from sluicegate.domain.topology import require, require_number
from sluicegate.policy.key_groups import Owners, Repartition, check_counts


def balanced(loads: Sequence[float], instances: int) -> Owners:
    """An owner for every group; every instance has at least one.

    >>> balanced([9.0, 1.0, 1.0, 1.0, 6.0], 2)
    (0, 1, 1, 1, 1)
    """
    check_counts(len(loads), instances)
    for load in loads:
        require_number(load, "load of a key group")
    owners = [0] * len(loads)
    # The count breaks ties, so that groups without load still leave no instance without a group.
    heap = [(0.0, 0, instance) for instance in range(instances)]
    for group in sorted(range(len(loads)), key=lambda g: (-loads[g], g)):
        load, count, instance = heap[0]
        owners[group] = instance
        heapq.heapreplace(heap, (load + loads[group], count + 1, instance))
    return tuple(owners)


def rebalance(before: Sequence[int], loads: Sequence[float], instances: int) -> Repartition:
    """The balanced assignment, with instances named so that the least load moves.

    >>> rebalance((1, 1, 0, 0), [4.0, 1.0, 2.0, 3.0], 2).after
    (1, 1, 0, 0)
    """
    require(len(before) == len(loads), f"{len(before)} groups have owners, {len(loads)} have loads: measure each once")
    fresh = balanced(loads, instances)
    kept = np.zeros((instances, instances))
    for group, (old, new) in enumerate(zip(before, fresh, strict=True)):
        if 0 <= old < instances:
            # Groups without load break ties: of two equal names, the one that moves fewer groups.
            kept[new, old] += loads[group] + 1e-9 * math.fsum(loads) / len(loads)
    _, name_of = linear_sum_assignment(kept, maximize=True)
    return Repartition(tuple(before), tuple(int(name_of[new]) for new in fresh))


def largest_load(owners: Sequence[int], loads: Sequence[float]) -> float:
    """The load of the instance that carries most.

    >>> largest_load((0, 0, 1), [1.0, 2.0, 2.5])
    3.0
    """
    carried: dict[int, float] = {}
    for owner, load in zip(owners, loads, strict=True):
        carried[owner] = carried.get(owner, 0.0) + load
    return max(carried.values(), default=0.0)
