"""Decides the number of key groups of an operator's state: it limits the tasks k, and each group costs batch time.

    batch = o + c k + g G/k + rows/(k mu)

g is seconds for each of the G groups: its store is opened and committed in every batch, even if empty. A policy plans k
up to a ceiling; if it keeps wanting more tasks than there are groups, more groups are requested: twice the tasks, so
that the next doubling needs none, or as many as fit the spare batch time. The operator is stopped while its state is
repartitioned, so requests wait for ``_AFTER_S`` and are ``_AGAIN_S`` apart. Until the groups exist, k is capped at the
current number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sluicegate.control.rules import SLIGHT
from sluicegate.domain import Change, Refusal, Situation

_AFTER_S = 6.0
"""How long more tasks than groups must have been wanted. At half a burst is enough, at double queues grow."""
_AGAIN_S = 10 * _AFTER_S
"""Least time between two requests for the same operator; after it a pending one may be replaced by another number."""


@dataclass(frozen=True, slots=True)
class GroupsAsked:
    """One operator's last requested number (0: none), its time, and since when more tasks than groups are wanted."""

    count: int = 0
    at_s: float = 0.0
    wants_since_s: float | None = None


def planned_groups(tasks: int, group_s: float, spare_s: float, most: int) -> int:
    """Groups for ``tasks``: up to twice as many, if groups beyond one per task cost at most ``spare_s`` a batch.

    ``group_s`` is the cost of one group per batch; 0 if it was not measured yet.

    >>> [planned_groups(8, group_s, 0.2, most=64) for group_s in (0.02, 0.05, 0.2, 1.0)]
    [16, 16, 16, 9]
    >>> planned_groups(40, 0.02, 0.2, most=64), planned_groups(8, 0.5, 0.05, most=64)
    (64, 8)
    """
    paid_for = min(int(spare_s * tasks / group_s + 1e-9), tasks) if group_s > 0 else tasks
    return max(min(tasks + paid_for, most), min(tasks, most))


def with_group_counts(
    known: Mapping[str, GroupsAsked], situation: Situation, wanted: Mapping[str, int]
) -> tuple[dict[str, GroupsAsked], dict[str, int], tuple[Change, ...], tuple[Refusal, ...]]:
    """The requests from now on, ``wanted`` capped at the existing groups, new changes, and refusals."""
    asked, kept = dict[str, GroupsAsked](), dict(wanted)
    changes, notes = list[Change](), list[Refusal]()
    for name, owners in situation.observation.groups.items():
        have, want = len(owners), wanted.get(name, 1)
        before = known.get(name, GroupsAsked())
        kept[name] = min(want, have)
        asked[name] = _after(before, situation, name, have, want)
        if asked[name].count not in (before.count, 0):
            reason = f"{want} tasks are wanted, {have} key groups allow {have}; {name} pauses for the repartitioning"
            changes.append(Change(f"number of key groups of {name}", str(have), str(asked[name].count), reason))
        if kept[name] < want:
            notes.append(Refusal("key groups", _why(name, have, want, asked[name], situation.now_s)))
    return asked, kept, tuple(changes), tuple(notes)


def _after(before: GroupsAsked, situation: Situation, name: str, have: int, want: int) -> GroupsAsked:
    now_s = situation.now_s
    if want <= have:
        return replace(before, wants_since_s=None)
    since_s = now_s if before.wants_since_s is None else before.wants_since_s
    waits = now_s - since_s < _AFTER_S or (before.count and now_s - before.at_s < _AGAIN_S)
    seen = situation.observation.of(name).group_s
    spare_s = SLIGHT * min(situation.goal.latency_bounds.values(), default=1.0)  # of 1 s without a latency goal
    count = planned_groups(want, min(seen, default=0.0), spare_s, situation.limits.most_for(name))
    if waits or count == before.count:  # do not repeat a request for the same number
        return replace(before, wants_since_s=since_s)
    return GroupsAsked(count, now_s, since_s)


def _why(name: str, have: int, want: int, asked: GroupsAsked, now_s: float) -> str:
    if asked.count > have:
        age_s = now_s - asked.at_s
        return (
            f"{name}: {want} tasks wanted, {have} until its state is in {asked.count} groups "
            f"(requested {age_s:.0f} s ago)"
        )
    since_s = now_s - (asked.wants_since_s if asked.wants_since_s is not None else now_s)
    return f"{name}: {want} tasks wanted for {since_s:.0f} s, it has {have} key groups: {have} for now"
