"""Assigns key groups to instances, with few moves when the number of instances changes (Es-Stream Eq 12, 13, 23, 24).

The paper routes by hash(key) mod m. From m to m' instances a share of 1 - gcd(m, m')/max(m, m') of the keys changes
its owner: nearly all of them. Here a fixed number G of key groups lies in between:

    group = hash(key) mod G,   owner = owners[group],   k <= G

The groups start as k contiguous ranges. A change of k takes from an instance only the groups above its new quota, its
last ones, so it moves the fewest groups any even assignment can: between even assignments at most
|k' - k| ceil(G / max(k, k')).

The rows of a stateful operator are redirected by assigning groups by measured load, as a key must stay with its state.
Longest processing time first: the heaviest group goes to the instance with the least load so far. The largest load is
at most 4/3 - 1/(3k) times the least possible (Graham 1969). Instances are then renamed so that as much load as possible
stays where it is.

Our reading: Eq 24 merges what comes from the k OLD instances (the paper prints 1..k*).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from sluicegate.domain.topology import require, require_number

Owners = tuple[int, ...]
"""The instance, from 0, that owns each group."""


@dataclass(frozen=True, slots=True)
class GroupMove:
    """A move of one group's state from one instance to another."""

    group: int
    origin: int
    target: int


@dataclass(frozen=True, slots=True)
class Repartition:
    """The owners of the groups before and after a change, and the moves in between."""

    before: Owners
    after: Owners

    def __post_init__(self) -> None:
        same = len(self.before) == len(self.after)
        require(same, f"{len(self.before)} groups before and {len(self.after)} after: G never changes")

    @property
    def moves(self) -> tuple[GroupMove, ...]:
        pairs = enumerate(zip(self.before, self.after, strict=True))
        return tuple(GroupMove(group, old, new) for group, (old, new) in pairs if old != new)

    def parts(self, origin: int) -> Mapping[int, tuple[int, ...]]:
        """Eq 23: the groups of one old instance, by the new instance they belong to."""
        return _split((new, g) for g, (old, new) in enumerate(self._pairs()) if old == origin)

    def merged(self, target: int) -> Mapping[int, tuple[int, ...]]:
        """Eq 24: the groups of one new instance, by the old instance they come from."""
        return _split((old, g) for g, (old, new) in enumerate(self._pairs()) if new == target)

    def _pairs(self) -> Iterable[tuple[int, int]]:
        return zip(self.before, self.after, strict=True)


def ranges(groups: int, instances: int) -> Owners:
    """Contiguous ranges of groups, their lengths at most 1 apart, the longer ones first.

    >>> ranges(8, 3)
    (0, 0, 0, 1, 1, 1, 2, 2)
    """
    check_counts(groups, instances)
    return tuple(i for i, quota in enumerate(_quotas(groups, instances)) for _ in range(quota))


def repartition(before: Sequence[int], instances: int) -> Repartition:
    """The even assignment to ``instances`` that moves the fewest groups.

    >>> plan = repartition(ranges(8, 3), 4)
    >>> plan.after, len(plan.moves)
    ((0, 0, 3, 1, 1, 3, 2, 2), 2)
    """
    check_counts(len(before), instances)
    held: dict[int, list[int]] = {}
    for group, owner in enumerate(before):
        held.setdefault(owner, []).append(group)
    after = list(before)
    free = [g for owner, own in held.items() if not 0 <= owner < instances for g in own]
    room: list[int] = []
    for instance, quota in _quotas_by_need(held, len(before), instances).items():
        own = held.get(instance, [])
        free += own[quota:]
        room += [instance] * (quota - len(own))
    for group, instance in zip(sorted(free), room, strict=True):
        after[group] = instance
    return Repartition(tuple(before), tuple(after))


def check_counts(groups: int, instances: int) -> None:
    """Raise unless there is at least one instance and every instance can own a group."""
    require(instances >= 1, f"{instances} instances: give at least 1")
    require(
        instances <= groups,
        f"{instances} instances over {groups} key groups: use at most {groups}, or raise the groups",
    )


def _quotas(groups: int, instances: int) -> list[int]:
    each, longer = divmod(groups, instances)
    return [each + (i < longer) for i in range(instances)]


def _quotas_by_need(held: Mapping[int, list[int]], groups: int, instances: int) -> dict[int, int]:
    """Even quotas, the larger ones for the instances that hold most, so that fewer groups move."""
    by_need = sorted(range(instances), key=lambda i: (-len(held.get(i, ())), i))
    quota_of = dict(zip(by_need, _quotas(groups, instances), strict=True))
    return {i: quota_of[i] for i in range(instances)}


def _split(pairs: Iterable[tuple[int, int]]) -> dict[int, tuple[int, ...]]:
    found: dict[int, tuple[int, ...]] = {}
    for other, group in pairs:
        found[other] = (*found.get(other, ()), group)
    return found


def balanced(loads: Sequence[float], instances: int) -> Owners:
    """Assign groups to instances by longest processing time first; every instance gets at least one.

    >>> balanced([9.0, 1.0, 1.0, 1.0, 6.0], 2)
    (0, 1, 1, 1, 1)
    """
    check_counts(len(loads), instances)
    for load in loads:
        require_number(load, "load of a key group")
    owners = [0] * len(loads)
    # The count breaks ties, so that every instance gets a group even if groups have no load.
    heap = [(0.0, 0, instance) for instance in range(instances)]
    for group in sorted(range(len(loads)), key=lambda g: (-loads[g], g)):
        load, count, instance = heap[0]
        owners[group] = instance
        heapq.heapreplace(heap, (load + loads[group], count + 1, instance))
    return tuple(owners)


def rebalance(before: Sequence[int], loads: Sequence[float], instances: int) -> Repartition:
    """The balanced assignment, with instances renamed so that the least load moves.

    >>> rebalance((1, 1, 0, 0), [4.0, 1.0, 2.0, 3.0], 2).after
    (1, 1, 0, 0)
    """
    require(len(before) == len(loads), f"{len(before)} groups have owners, {len(loads)} have loads: measure each once")
    fresh = balanced(loads, instances)
    kept = np.zeros((instances, instances))
    for group, (old, new) in enumerate(zip(before, fresh, strict=True)):
        if 0 <= old < instances:
            # A small weight per group breaks ties in favour of fewer moved groups.
            kept[new, old] += loads[group] + 1e-9 * math.fsum(loads) / len(loads)
    _, name_of = linear_sum_assignment(kept, maximize=True)
    return Repartition(tuple(before), tuple(int(name_of[new]) for new in fresh))


def largest_load(owners: Sequence[int], loads: Sequence[float]) -> float:
    """The load of the busiest instance.

    >>> largest_load((0, 0, 1), [1.0, 2.0, 2.5])
    3.0
    """
    carried: dict[int, float] = {}
    for owner, load in zip(owners, loads, strict=True):
        carried[owner] = carried.get(owner, 0.0) + load
    return max(carried.values(), default=0.0)
