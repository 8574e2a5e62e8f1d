"""Measured throughput and resource usage of a task on one slot."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sluicegate.errors import BadInput


@dataclass(frozen=True, slots=True)
class ProfilePoint:
    """With ``threads`` on one slot the task sustained ``rate_per_s``, using these shares of the slot."""

    threads: int
    rate_per_s: float
    cpu: float
    memory: float

    def __post_init__(self) -> None:
        if self.threads < 1:
            raise BadInput(f"threads is {self.threads}: a profile point needs at least 1")
        if not (math.isfinite(self.rate_per_s) and self.rate_per_s > 0):
            raise BadInput(f"rate_per_s at {self.threads} threads is {self.rate_per_s}: it must be above 0")
        for what, share in (("cpu", self.cpu), ("memory", self.memory)):
            if not 0 <= share <= 1:
                raise BadInput(f"{what} at {self.threads} threads is {share}: it is a share of a slot, 0 to 1")


@dataclass(frozen=True, slots=True)
class TaskProfile:
    """The points of one task, by rising thread count.

    ``service_per_s`` is the rate of one task without batch overhead, where it was measured; rates observed later are
    compared with it.
    """

    task: str
    points: tuple[ProfilePoint, ...]
    service_per_s: float | None = None

    def __post_init__(self) -> None:
        if not self.points:
            raise BadInput(f"profile of {self.task!r} has no points: add at least threads = 1")
        threads = [point.threads for point in self.points]
        if threads != sorted(set(threads)):
            raise BadInput(f"profile of {self.task!r}: thread counts {threads} must rise, each once")
        if threads[0] != 1:
            raise BadInput(
                f"profile of {self.task!r} starts at {threads[0]} threads: it needs a point with threads = 1"
            )
        if self.service_per_s is not None and not (math.isfinite(self.service_per_s) and self.service_per_s > 0):
            raise BadInput(f"profile of {self.task!r}: service_per_s is {self.service_per_s}: it must be above 0")
