"""Which task takes each key group of a stateful operator.

A key must keep its group and a group its state, so rows cannot be redirected; groups can. When the number of tasks
changes the fewest groups move (Es-Stream Eq 23 and 24). Where one task lasts much longer than the mean of all, groups
are spread by their measured load; not for little, since a group that moves to another executor loads its state there.
"""

from __future__ import annotations

from collections.abc import Sequence

from sluicegate.policy.balanced_groups import largest_load, rebalance
from sluicegate.policy.key_groups import Owners, ranges, repartition

_UNEVEN, _WORTH = 1.25, 0.9
"""A task this much above the mean is worth a look; new owners must bring the largest down to this share of it."""


def owners_for(before: Sequence[int], groups: int, tasks: int, loads_s: Sequence[float] = ()) -> tuple[Owners, str]:
    """The task of every group, from 0, and why; what was chosen last stays while it is good enough.

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
        largest = largest_load(owners, loads_s)
        if largest > _UNEVEN * sum(loads_s) / tasks:
            fresh = rebalance(owners, loads_s, tasks).after
            lower = largest_load(fresh, loads_s)
            if lower <= _WORTH * largest:
                return fresh, f"the busiest of {tasks} tasks takes {lower:.3g} s a batch instead of {largest:.3g} s"
    return owners, why
