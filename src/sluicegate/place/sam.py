"""Slot-aware mapping (model-driven scheduling, Section 7.4 and Algorithm 6).

Tasks in topological order, sweep after sweep, one bundle of each task in turn:

    a full bundle goes alone to an empty slot of the VM mapped last, or of the next VM that has one
    another goes to the best fit: the slot with the smallest CPU + memory left that is enough; empty slots come last

Tasks share slots only by their last, partial bundle, so there is at most one mixed slot per task. Which bundles share
a slot does not depend on the fleet, only the location of the slot does. So bundles are packed first: they fit if and
only if the fleet has that many slots or more.

Our reading: a full bundle is one that the planner marked (rate >= omega_hat), not one with tau_hat pending threads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from sluicegate.domain import Bundle, Placement, Topology, Vm
from sluicegate.place.best_fit import SLACK, OpenSlots
from sluicegate.place.placer import DoesNotFit
from sluicegate.place.sweep import Slots, by_task, sweeps


@dataclass(frozen=True, slots=True)
class Sam:
    @property
    def name(self) -> str:
        return "sam"

    def place(self, topology: Topology, bundles: Sequence[Bundle], fleet: Sequence[Vm]) -> Placement | DoesNotFit:
        """
        >>> from sluicegate.domain import Edge, Operator
        >>> two = Topology("t", (Operator("a", 9.0), Operator("b", 9.0)), (Edge("source", "a"), Edge("a", "b")))
        >>> need = [Bundle("a", 5, 1.0, 1.0, full=True), Bundle("a", 1, 0.5, 0.5), Bundle("b", 2, 0.5, 0.5)]
        >>> Sam().place(two, need, [Vm("vm-1", 2)]).slots
        {'vm-1/1': (('a', 5),), 'vm-1/2': (('b', 2), ('a', 1))}
        """
        slots = Slots.of(fleet)
        packed = list(_packed(topology, bundles))
        needed = 1 + max((shelf for _, shelf in packed), default=-1)
        for bundle, shelf in packed:
            if _too_large(bundle) or shelf >= len(slots.names):
                return DoesNotFit(_why_not(bundle, len(slots.names), needed))
        where = _locate([shelf for _, shelf in packed], slots)
        placed = ((where[shelf], bundle.operator, bundle.threads) for bundle, shelf in packed)
        return slots.placement(placed, f"sam: {len(packed)} bundles on {needed} of {len(slots.names)} slots")

    def fewest_slots(self, topology: Topology, bundles: Sequence[Bundle]) -> int | None:
        """The slots this mapping needs, ``None`` if a bundle is larger than a slot."""
        if any(map(_too_large, bundles)):
            return None
        return 1 + max((shelf for _, shelf in _packed(topology, bundles)), default=-1)


def _packed(topology: Topology, bundles: Sequence[Bundle]) -> Iterator[tuple[Bundle, int]]:
    """Each bundle in mapping order with its shelf; shelves are slots numbered in the order in which they are opened."""
    tasks = by_task(topology, bundles, topology.order)
    shelves, room = 0, OpenSlots()
    for bundle in sweeps(tasks.values()):
        found = None if bundle.full else room.take(bundle.cpu, bundle.memory)
        shelf, cpu, memory = found or (shelves, 1.0, 1.0)
        shelves += found is None
        if not bundle.full:
            room.put(shelf, cpu - bundle.cpu, memory - bundle.memory)
        yield bundle, shelf


def _locate(shelves: Sequence[int], slots: Slots) -> list[int]:
    """The slot of each shelf: the first empty one of the VM mapped last, else of the next VM round the fleet."""
    sizes = [vm.slots for vm in slots.fleet]
    firsts = [end - size for end, size in zip(accumulate(sizes), sizes, strict=True)]
    empty, ahead = sizes.copy(), list(range(len(sizes)))
    where: list[int] = []
    last = 0
    for shelf in shelves:
        if shelf < len(where):
            last = slots.vm[where[shelf]]
            continue
        last = _next_with_room(last, empty, ahead)
        where.append(firsts[last] + sizes[last] - empty[last])
        empty[last] -= 1
    return where


def _next_with_room(vm: int, empty: Sequence[int], ahead: list[int]) -> int:
    """``vm`` or the next with an empty slot; one must exist.

    ``ahead`` points past VMs known to be full, with path halving as in union-find, so that a search is cheap even among
    thousands of full VMs.
    """
    while not empty[vm]:
        if ahead[vm] == vm:
            ahead[vm] = (vm + 1) % len(empty)
        step = ahead[vm]
        if not empty[step] and ahead[step] != step:
            ahead[vm] = ahead[step]
        vm = step
    return vm


def _too_large(bundle: Bundle) -> bool:
    return max(bundle.cpu, bundle.memory) > 1 + SLACK


def _why_not(bundle: Bundle, have: int, needed: int) -> str:
    kind = "full bundle" if bundle.full else "bundle"
    need = f"{bundle.operator}: a {kind} of {bundle.threads} threads needs {bundle.cpu:.1%} CPU and "
    if _too_large(bundle):
        return need + f"{bundle.memory:.1%} memory, more than a slot has"
    return need + f"{bundle.memory:.1%} memory; none of {have} slots has that left, the mapping needs {needed} slots"
