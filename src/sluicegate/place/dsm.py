"""Default Storm mapping (model-driven scheduling, Algorithm 4): threads round robin over the slots.

Tasks in topological order, each thread to the next slot, wrapping around. It ignores both the needs of threads and the
room on slots: it never fails while there is a slot, and may overload one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sluicegate.domain import Bundle, Placement, Topology, Vm
from sluicegate.place.placer import DoesNotFit
from sluicegate.place.sweep import Slots, by_task


@dataclass(frozen=True, slots=True)
class Dsm:
    @property
    def name(self) -> str:
        return "dsm"

    def place(self, topology: Topology, bundles: Sequence[Bundle], fleet: Sequence[Vm]) -> Placement | DoesNotFit:
        """
        >>> from sluicegate.domain import Edge, Operator
        >>> two = Topology("t", (Operator("a", 9.0), Operator("b", 9.0)), (Edge("source", "a"), Edge("a", "b")))
        >>> found = Dsm().place(two, [Bundle("a", 3, 0.3, 0.3), Bundle("b", 2, 0.2, 0.2)], [Vm("vm-1", 2)])
        >>> found.slots
        {'vm-1/1': (('a', 2), ('b', 1)), 'vm-1/2': (('a', 1), ('b', 1))}
        """
        slots = Slots.of(fleet)
        tasks = by_task(topology, bundles, topology.order)
        counts = {task: sum(bundle.threads for bundle in queue) for task, queue in tasks.items()}
        total, room = sum(counts.values()), len(slots.names)
        if total and not room:
            return DoesNotFit(f"{total} threads and no slot: rent at least 1")
        return slots.placement(_round_robin(counts, room), f"dsm: {total} threads round robin over {room} slots")


def _round_robin(counts: dict[str, int], room: int) -> Iterator[tuple[int, str, int]]:
    """(slot, task, threads) of a round robin: thread j of a task that starts at s goes to slot (s + j) mod room."""
    start = 0
    for task, threads in counts.items():
        for j in range(min(threads, room)):
            yield (start + j) % room, task, (threads - j + room - 1) // room
        start = (start + threads) % room
