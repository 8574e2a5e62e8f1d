"""The executors and nodes that a pipeline may use, and those observed to exist."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sluicegate.errors import BadInput


@dataclass(frozen=True, slots=True)
class Shape:
    """Executor size and count limits; ``settle_s`` is how long fewer must have sufficed before one is removed."""

    slots_per_executor: int = 1
    least: int = 1
    most: int = 4
    settle_s: float = 20.0

    def __post_init__(self) -> None:
        if self.slots_per_executor < 1 or not 1 <= self.least <= self.most:
            raise BadInput(
                f"{self.least} to {self.most} executors of {self.slots_per_executor} slots: 1 <= least <= most"
            )

    @property
    def slots(self) -> int:
        return self.most * self.slots_per_executor

    def within(self, executors: int) -> int:
        """``executors`` clamped to ``least`` and ``most``.

        >>> [Shape(2, 1, 8).within(n) for n in (0, 3, 20)]
        [1, 3, 8]
        """
        return min(max(executors, self.least), self.most)

    def on(self, nodes: Iterable[int]) -> int:
        """How many executors fit on nodes with these slot counts; an executor cannot span two nodes.

        >>> Shape(2).on([4, 3])
        3
        """
        return sum(slots // self.slots_per_executor for slots in nodes)


@dataclass(frozen=True, slots=True)
class ExecutorSeen:
    """A registered executor; tasks are placed only on ``warm`` ones."""

    host: str
    slots: int
    warm: bool = True
    id: str = ""

    @property
    def place(self) -> str:
        """This executor in the form of Spark's preferred task location."""
        return f"executor_{self.host}_{self.id}"


def host_of(place: str) -> str:
    """The host of a preferred task location, which is a host name or an executor.

    >>> host_of("127.0.0.2"), host_of("executor_127.0.0.2_3")
    ('127.0.0.2', '127.0.0.2')
    """
    return place.removeprefix("executor_").rpartition("_")[0] if place.startswith("executor_") else place


@dataclass(frozen=True, slots=True)
class NodeSeen:
    """A running node: ``name`` is the provider's name for it, ``host`` is Spark's."""

    name: str
    slots: int
    host: str = ""


@dataclass(frozen=True, slots=True)
class FleetSeen:
    """The observed executors and nodes. ``requested`` is the number of executors last requested from Spark.

    ``nodes`` is ``None`` where nodes cannot be started or stopped. ``problem`` is why a request was not fulfilled.
    ``startup_s`` is the median time from a request for more executors until the last of them is warm, over the last
    ``startups`` requests; ``None`` before the first.
    """

    shape: Shape
    executors: tuple[ExecutorSeen, ...] = ()
    nodes: tuple[NodeSeen, ...] | None = None
    requested: int | None = None
    requested_at_s: float | None = None
    problem: str = ""
    startup_s: float | None = None
    startups: int = 0

    @property
    def warm(self) -> tuple[ExecutorSeen, ...]:
        return tuple(one for one in self.executors if one.warm)

    @property
    def complete(self) -> bool:
        """Whether exactly the requested executors are registered and all are warm."""
        return self.requested is None or (len(self.executors) == self.requested and len(self.warm) == self.requested)
