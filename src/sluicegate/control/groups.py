"""Assigns the key groups of a stateful operator to its tasks.

A key must keep its group and a group its state, so single rows cannot be redirected; groups can be moved. When the
number of tasks changes the fewest groups move (Es-Stream Eq 23 and 24). If the load of the tasks is uneven, groups are
reassigned by their measured load. A group that moves to another executor loads its state there, so a move must reduce
the largest load by more than

    a tenth of it, a tenth of a batch, and noise: five times the standard deviation, from one observation to the next,
    of the busiest task's share of the load

and the next move waits until the effect was measured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sluicegate.control.rules import SLIGHT
from sluicegate.policy.key_groups import Owners, largest_load, ranges, rebalance, repartition

_DEVIATIONS = 5.0
"""Noise threshold. At half, noise moves groups of an even load three times as often; at double a group of four times
the load is not moved."""
_LOOKS = 4
"""Observations with fresh loads before the next move. At half the loads are still those of batches before the move."""
_MEMORY = 5 * _LOOKS
"""Observations over which noise is learned. Half: its estimate is noisy itself. Double: a changed load moves later."""


@dataclass(frozen=True, slots=True)
class GroupsSeen:
    """Mean and variance of the load shares of one operator's groups, and the observations since the last move."""

    mean: tuple[float, ...] = ()
    variance: tuple[float, ...] = ()
    looks: int = 0
    since_move: int = _LOOKS

    def after(self, loads_s: Sequence[float]) -> GroupsSeen:
        """Updated with the loads of one observation, as shares, because a change of the total load is not noise."""
        total = math.fsum(loads_s)
        if not loads_s or total <= 0:
            return self
        shares = tuple(load / total for load in loads_s)
        if len(self.mean) != len(shares):
            return GroupsSeen(shares, (0.0,) * len(shares), 1, self.since_move + 1)
        weight = 1 / min(self.looks + 1, _MEMORY)
        pairs = list(zip(self.mean, self.variance, shares, strict=True))
        return GroupsSeen(
            tuple(m + weight * (x - m) for m, _, x in pairs),
            tuple((1 - weight) * (v + weight * (x - m) ** 2) for m, v, x in pairs),
            self.looks + 1,
            self.since_move + 1,
        )

    def noise_s(self, owners: Sequence[int], loads_s: Sequence[float]) -> float:
        """One standard deviation of the busiest task's load; 0 if there is no history for these groups.

        Noise relative to the load is assumed equal for all groups, so that it is known after a few observations.
        """
        if len(self.mean) != len(loads_s):
            return 0.0
        squared = math.fsum(self.variance) / math.fsum(m * m for m in self.mean)
        busiest = max(set(owners), key=lambda task: sum(s for o, s in zip(owners, loads_s, strict=True) if o == task))
        own = (m * m for owner, m in zip(owners, self.mean, strict=True) if owner == busiest)
        return math.sqrt(squared * math.fsum(own)) * math.fsum(loads_s)


def moved_for(
    seen: GroupsSeen, before: Owners, tasks: int, loads_s: Sequence[float], batch_s: float | None
) -> tuple[GroupsSeen, Owners, str]:
    """The updated history, the task of every group, and the reason; ``loads_s`` is empty if nothing was measured.

    The latest loads are compared with the noise of all earlier ones; the mean of many observations has less noise, so
    that a small but lasting imbalance is corrected too.
    """
    stays, why = owners_for(before, len(before), tasks)
    after = seen.after(loads_s)
    if stays != tuple(before):
        return replace(after, since_move=0), stays, why
    if not loads_s or after.since_move <= _LOOKS:
        return after, stays, why
    part_s, noise_s = SLIGHT * (batch_s or 0.0), _DEVIATIONS * seen.noise_s(stays, loads_s)
    means_s = tuple(share * math.fsum(loads_s) for share in after.mean)
    for load_s, noise in ((loads_s, noise_s), (means_s, noise_s / math.sqrt(min(after.looks, _MEMORY)))):
        owners, why = owners_for(stays, len(stays), tasks, load_s, max(part_s, noise))
        if owners != stays:
            return replace(after, since_move=0), owners, why
    return after, stays, ""


def owners_for(
    before: Sequence[int], groups: int, tasks: int, loads_s: Sequence[float] = (), least_saved_s: float = 0.0
) -> tuple[Owners, str]:
    """The task of every group, from 0, and the reason; kept unless a change saves more than ``least_saved_s``.

    >>> owners_for((), 4, 2, [3.0, 3.0, 0.5, 0.5])
    ((1, 0, 1, 0), 'the busiest of 2 tasks takes 3.5 s a batch instead of 6 s')
    >>> owners_for((0, 0, 1, 1), 4, 4)[1]
    '2 of 4 groups move: 2 -> 4 tasks'
    """
    tasks = min(tasks, groups)
    owners, why = tuple(before), ""
    if len(owners) != groups:
        owners = ranges(groups, tasks)
    elif len(set(owners)) != tasks:
        after = repartition(owners, tasks)
        why = f"{len(after.moves)} of {groups} groups move: {len(set(owners))} -> {tasks} tasks"
        owners = after.after
    if len(loads_s) == groups and 1 < tasks < groups:
        fresh = rebalance(owners, loads_s, tasks).after
        largest, lower = largest_load(owners, loads_s), largest_load(fresh, loads_s)
        if largest - lower > max(SLIGHT * largest, least_saved_s):
            return fresh, f"the busiest of {tasks} tasks takes {lower:.3g} s a batch instead of {largest:.3g} s"
    return owners, why
