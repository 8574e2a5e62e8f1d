"""Which instance owns which keys, and what must move when their number changes (Es-Stream Eq 12, 13, 23, 24).

The paper routes by hash(key) mod m. From m to m' instances a share of 1 - gcd(m, m')/max(m, m') of the keys changes
its owner: nearly all of them. Ours puts a fixed number G of key groups in between:

    group = hash(key) mod G,   owner = owners[group],   k <= G

The groups start as k contiguous ranges. A change of k takes from an instance only what is above its new quota, from
the end of what it has, so it moves the fewest groups any even assignment can: between even assignments at most
|k' - k| ceil(G / max(k, k')).

Our reading: Eq 24 merges what comes from the k OLD instances (the paper prints 1..k*).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sluicegate.domain.topology import require

Owners = tuple[int, ...]
"""The instance, from 0, that owns each group."""


@dataclass(frozen=True, slots=True)
class GroupMove:
    """One group's state goes from one instance to another."""

    group: int
    origin: int
    target: int


@dataclass(frozen=True, slots=True)
class Repartition:
    """Who owned the groups, who will, and what moves in between."""

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


def share_moved_by_modulo(before: int, after: int) -> float:
    """Share of the keys that hash mod m gives a new owner: Eq 12 against Eq 13.

    >>> share_moved_by_modulo(3, 4), share_moved_by_modulo(4, 8), share_moved_by_modulo(5, 5)
    (0.75, 0.5, 0.0)
    """
    require(before >= 1 and after >= 1, f"{before} -> {after} instances: both must be at least 1")
    return 1 - math.gcd(before, after) / max(before, after)


def group_of(key_hash: int, groups: int) -> int:
    """The group of a key, whatever the number of instances."""
    require(groups >= 1, f"{groups} key groups: give at least 1")
    return key_hash % groups


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
    """Every instance needs a group to own."""
    require(instances >= 1, f"{instances} instances: give at least 1")
    require(
        instances <= groups,
        f"{instances} instances over {groups} key groups: use at most {groups}, or raise the groups",
    )


def _quotas(groups: int, instances: int) -> list[int]:
    each, longer = divmod(groups, instances)
    return [each + (i < longer) for i in range(instances)]


def _quotas_by_need(held: Mapping[int, list[int]], groups: int, instances: int) -> dict[int, int]:
    """Even quotas, the longer ones for those who hold most: what they keep need not move."""
    by_need = sorted(range(instances), key=lambda i: (-len(held.get(i, ())), i))
    quota_of = dict(zip(by_need, _quotas(groups, instances), strict=True))
    return {i: quota_of[i] for i in range(instances)}


def _split(pairs: Iterable[tuple[int, int]]) -> dict[int, tuple[int, ...]]:
    found: dict[int, tuple[int, ...]] = {}
    for other, group in pairs:
        found[other] = (*found.get(other, ()), group)
    return found
