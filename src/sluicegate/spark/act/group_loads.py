"""Measures the time of each key group of a stateful operator, and assigns groups to tasks as planned.

The times go into the batch log; the control loop decides which task each group goes to (``control.groups``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import SparkSession

from sluicegate.control.groups import owners_for

_WEIGHT = 0.3
_BATCHES = 4
"""Batches needed before the loads are used."""


@dataclass(slots=True)
class GroupLoads:
    """Key group loads of one operator. ``loads_s`` are smoothed seconds per batch."""

    number: int
    loads_s: list[float] = field(default_factory=list)
    batches: int = 0
    _owners: tuple[int, ...] = ()
    _times: Any = None
    _before: tuple[int, ...] = ()

    def times(self, spark: SparkSession) -> Any:
        """The accumulators for the next batch's tasks; first takes in the times recorded so far."""
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
        """Add the times of one batch, by group."""
        old = self.loads_s or seconds
        self.loads_s = [a + _WEIGHT * (b - a) for a, b in zip(old, seconds, strict=True)]
        self.batches += 1

    def owners(self, k: int, planned: Sequence[int] = ()) -> tuple[int, ...]:
        """The task number of every group: the plan's if it fits ``k`` tasks, else the last ones with the fewest moves.

        >>> groups = GroupLoads(4)
        >>> groups.owners(2), groups.owners(2, (1, 0, 1, 0)), groups.owners(3)
        ((0, 0, 1, 1), (1, 0, 1, 0), (1, 0, 2, 0))
        """
        k = min(k, self.number)
        if len(planned) == self.number and set(planned) == set(range(k)):
            self._owners = tuple(planned)
        elif len(set(self._owners)) != k:
            self._owners = owners_for(self._owners, self.number, k)[0]
        return self._owners

    @property
    def told_s(self) -> tuple[float, ...]:
        """The loads; empty until enough batches were measured."""
        return tuple(round(load_s, 6) for load_s in self.loads_s) if self.batches >= _BATCHES else ()
