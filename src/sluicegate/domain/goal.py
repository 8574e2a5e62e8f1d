"""The user's goal (latency, on-time share, cost) and the limits on the resources that sluicegate may use for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sluicegate.domain.topology import require, require_number


@dataclass(frozen=True, slots=True)
class Goal:
    """A latency bound, a cost ceiling, or both.

    ``mean_s``, ``p50_s``, ``p95_s``, ``p99_s`` bound the sojourn from source to sink. ``relaxed_s`` is DRS's T_min:
    processors may be removed while the mean is below it. ``on_time`` is the share of steps in which capacity must
    exceed the load. ``cost_per_hour`` bounds the cost of the machines.
    """

    mean_s: float | None = None
    p50_s: float | None = None
    p95_s: float | None = None
    p99_s: float | None = None
    relaxed_s: float | None = None
    on_time: float | None = None
    cost_per_hour: float | None = None

    def __post_init__(self) -> None:
        for what in ("mean_s", "p50_s", "p95_s", "p99_s", "relaxed_s", "cost_per_hour"):
            value = getattr(self, what)
            if value is not None:
                require_number(value, f"goal {what}", above=True)
        if self.on_time is not None:
            require(
                0 < self.on_time < 1, f"goal on_time is {self.on_time}: give a share between 0 and 1, such as 0.995"
            )
        if self.mean_s is not None and self.relaxed_s is not None:
            require(self.relaxed_s < self.mean_s, f"relaxed_s {self.relaxed_s:g} must be below mean_s {self.mean_s:g}")

    @property
    def latency_bounds(self) -> dict[str, float]:
        """The latency bounds that are set, such as ``{"mean": 2.0, "p95": 5.0}``."""
        bounds = {"mean": self.mean_s, "p50": self.p50_s, "p95": self.p95_s, "p99": self.p99_s}
        return {what: bound for what, bound in bounds.items() if bound is not None}


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on processors: in total (``budget``) and per operator (``least``, ``most``, ``least_of``, ``most_of``)."""

    budget: int | None = None
    least: int = 1
    most: int = 1_000_000
    most_of: Mapping[str, int] = field(default_factory=dict)
    least_of: Mapping[str, int] = field(default_factory=dict)
    slots_per_executor: int = 1
    executors_per_node: int = 1
    price_per_slot_hour: float = 0.05

    def __post_init__(self) -> None:
        require(self.budget is None or self.budget >= 1, f"budget is {self.budget}: give at least 1 processor")
        require(1 <= self.least <= self.most, f"least {self.least} and most {self.most}: need 1 <= least <= most")
        for name, most in self.most_of.items():
            require(most >= 1, f"most processors of {name!r} is {most}: give at least 1")
        for name, least in self.least_of.items():
            fits = 1 <= least <= self.most_for(name)
            require(fits, f"least processors of {name!r} is {least}: give 1 to {self.most_for(name)}")
        require(self.slots_per_executor >= 1, "slots_per_executor must be at least 1")
        require(self.executors_per_node >= 1, "executors_per_node must be at least 1")
        require_number(self.price_per_slot_hour, "price_per_slot_hour")

    def most_for(self, name: str) -> int:
        return min(self.most, self.most_of.get(name, self.most))

    def least_for(self, name: str) -> int:
        return max(self.least, self.least_of.get(name, self.least))

    def clamp(self, name: str, processors: int) -> int:
        return max(self.least_for(name), min(self.most_for(name), processors))
