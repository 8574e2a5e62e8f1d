"""The executors and nodes that a pipeline may use, and those that are there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sluicegate.errors import BadInput


@dataclass(frozen=True, slots=True)
class Shape:
    """How large an executor is, how many there may be, and for how long fewer must have been enough before one goes."""

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
        """So many, or the limit that is nearest.

        >>> [Shape(2, 1, 8).within(n) for n in (0, 3, 20)]
        [1, 3, 8]
        """
        return min(max(executors, self.least), self.most)

    def on(self, nodes: Iterable[int]) -> int:
        """How many executors fit on nodes of so many slots: one does not stretch over two.

        >>> Shape(2).on([4, 3])
        3
        """
        return sum(slots // self.slots_per_executor for slots in nodes)


@dataclass(frozen=True, slots=True)
class ExecutorSeen:
    """An executor that is registered; nothing is placed on one that is not ``warm`` yet."""

    host: str
    slots: int
    warm: bool = True
    id: str = ""

    @property
    def place(self) -> str:
        """This one executor as a place that Spark's tasks may prefer."""
        return f"executor_{self.host}_{self.id}"


def host_of(place: str) -> str:
    """The host of a place, which is a host or one executor.

    >>> host_of("127.0.0.2"), host_of("executor_127.0.0.2_3")
    ('127.0.0.2', '127.0.0.2')
    """
    return place.removeprefix("executor_").rpartition("_")[0] if place.startswith("executor_") else place


@dataclass(frozen=True, slots=True)
class NodeSeen:
    """A node that is up, by the name its provider knows and the host that Spark does."""

    name: str
    slots: int
    host: str = ""


@dataclass(frozen=True, slots=True)
class FleetSeen:
    """What there is and may be. ``requested`` is the number of executors that Spark was last asked for.

    ``nodes`` is ``None`` where nobody can start or stop them. ``problem`` is why what was asked for did not come.
    ``startup_s`` is the median time from asking for more to the last of them being warm, over the last ``startups`` of
    them; ``None`` before there was one.
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
        """Whether all that was asked for is there and warm."""
        return self.requested is None or (len(self.executors) == self.requested and len(self.warm) == self.requested)
