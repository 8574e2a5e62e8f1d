"""How long each key group of a stateful operator takes, and which task it should go to.

A key must keep its group and a group its state, so rows cannot be redirected; groups can. Spark puts neighbours
together, however heavy; where that makes one task last much longer than the mean of all, groups are spread by load
(``plan.balanced_groups``). Not for little: a group that moves to another executor loads its state there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import SparkSession

from sluicegate.policy.balanced_groups import largest_load, rebalance
from sluicegate.policy.key_groups import ranges, repartition

_WEIGHT = 0.3
_BATCHES = 4
"""Fewer say nothing yet."""
_UNEVEN, _WORTH = 1.25, 0.9
"""A task this much above the mean is worth a look; new owners must bring the largest down to this share of it."""


@dataclass(slots=True)
class GroupLoads:
    """Of one operator. ``loads_s`` are seconds a batch, smoothed."""

    number: int
    loads_s: list[float] = field(default_factory=list)
    batches: int = 0
    _owners: tuple[int, ...] = ()
    _times: Any = None
    _before: tuple[int, ...] = ()

    def times(self, spark: SparkSession) -> Any:
        """What the tasks of the next batch note their times in; what was noted so far is taken in."""
        if self._times is None:
            jvm: Any = spark.sparkContext._jvm
            self._times = jvm.sluicegate.GroupTimes(spark._jsparkSession, self.number)
            self._before = (0,) * self.number
        told = tuple(int(value) for value in self._times.told())
        if told != self._before:
            self.take([(now - then) / 1e9 for now, then in zip(told, self._before, strict=True)])
            self._before = told
        return self._times

    def take(self, seconds: list[float]) -> None:
        """One batch's times by group."""
        old = self.loads_s or seconds
        self.loads_s = [a + _WEIGHT * (b - a) for a, b in zip(old, seconds, strict=True)]
        self.batches += 1

    def owners(self, k: int) -> tuple[int, ...]:
        """The task of every group, from 0; what was chosen last stays while it is good enough.

        >>> groups = GroupLoads(4)
        >>> for _ in range(4):
        ...     groups.take([3.0, 3.0, 0.5, 0.5])
        >>> groups.owners(2)
        (1, 0, 1, 0)
        """
        k = min(k, self.number)
        if not self._owners:
            self._owners = ranges(self.number, k)
        elif len(set(self._owners)) != k:
            self._owners = repartition(self._owners, k).after
        if self.batches >= _BATCHES and 1 < k < self.number:
            largest, mean = largest_load(self._owners, self.loads_s), sum(self.loads_s) / k
            if largest > _UNEVEN * mean:
                fresh = rebalance(self._owners, self.loads_s, k).after
                if largest_load(fresh, self.loads_s) <= _WORTH * largest:
                    self._owners = fresh
        return self._owners
