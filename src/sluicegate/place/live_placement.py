"""A mutable copy of a running placement with the measured load of its instances, to which moves are applied."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sluicegate.domain import Bundle, Placement, Topology
from sluicegate.model.task_profile import usage
from sluicegate.place.slot_ledger import SlotLedger


@dataclass(frozen=True, slots=True)
class Instance:
    """The threads of one operator on one slot, and their measured load as a share of a slot."""

    bundle: Bundle
    slot: int
    load: float


class LivePlacement:
    """The placement, changed by ``move``. ``may_move`` are the measured instances that have not moved yet.

    Unmeasured instances stay and count with their operator's declared CPU, so that their node does not appear idle.
    ``speeds`` are those of the VMs (1 where none is given): on a slower one an instance is busy for longer.
    """

    def __init__(
        self,
        topology: Topology,
        placement: Placement,
        loads: Mapping[tuple[str, str], float],
        speeds: Mapping[str, float] | None = None,
    ) -> None:
        self.ledger = SlotLedger(placement.vms)
        self._speed = [(speeds or {}).get(vm.name, 1.0) for vm in placement.vms]
        self._before = placement
        number = {name: slot for slot, name in enumerate(self.ledger.slots.names)}
        self.may_move: list[Instance] = []
        self._open: dict[Bundle, dict[int, int]] = {}
        self._load = [0.0] * len(placement.vms)
        for name, groups in placement.slots.items():
            for operator, threads in groups:
                bundle, slot, load = footprint(topology, operator, threads), number[name], loads.get((operator, name))
                self.ledger.put(slot, bundle)
                if load is not None:
                    self.may_move.append(Instance(bundle, slot, load))
                self._load[self.ledger.slots.vm[slot]] += bundle.cpu if load is None else load
        self._used_before = self.used()

    def vm_of(self, one: Instance) -> int:
        return self.ledger.slots.vm[one.slot]

    def load_of(self, vm: int) -> float:
        """Load of a VM as a share of its slots."""
        return self._load[vm] / self._size(vm)

    def load_with(self, vm: int, one: Instance) -> float:
        """The VM's load if the instance were moved to it."""
        return self.load_of(vm) + self._load_on(vm, one) / self._size(vm)

    def faster_on(self, vm: int, one: Instance) -> float:
        """How many times as fast the VM is as the one that runs the instance."""
        return self._speed[vm] / self._speed[self.vm_of(one)]

    def used(self) -> list[int]:
        """VMs that run something."""
        return [vm for vm, hosts in enumerate(self.ledger.hosts) if hosts.total()]

    def utilisation(self) -> float:
        """Load of the VMs in use over their slots; 1 if none is in use, as there is nothing to pack."""
        used = self.used()
        return sum(self._load[vm] for vm in used) / sum(map(self._size, used)) if used else 1.0

    def open_slots(self, bundle: Bundle) -> dict[int, int]:
        """By VM, the slot with room for such a bundle; cached until the next move, as many instances are equal."""
        if bundle not in self._open:
            slots = ((vm, self.ledger.slot_for(vm, bundle)) for vm in range(len(self.ledger.hosts)))
            self._open[bundle] = {vm: slot for vm, slot in slots if slot is not None}
        return self._open[bundle]

    def move(self, one: Instance, slot: int) -> None:
        self._open.clear()
        self.ledger.remove(one.slot, one.bundle)
        self._load[self.vm_of(one)] -= one.load
        self.ledger.put(slot, one.bundle)
        there = self.ledger.slots.vm[slot]
        self._load[there] += self._load_on(there, one)
        self.may_move.remove(one)

    def released(self) -> tuple[str, ...]:
        """VMs that ran something before the moves and now run nothing."""
        now = set(self.used())
        return tuple(self.ledger.slots.fleet[vm].name for vm in self._used_before if vm not in now)

    def placement(self, reason: str) -> Placement:
        found = self.ledger.placement(reason)
        return replace(found, extra_slots=self._before.extra_slots, reasons=(*self._before.reasons, reason))

    def _load_on(self, vm: int, one: Instance) -> float:
        return one.load / self.faster_on(vm, one)

    def _size(self, vm: int) -> int:
        return max(self.ledger.slots.fleet[vm].slots, 1)


def footprint(topology: Topology, operator: str, threads: int) -> Bundle:
    """The share of a slot that these threads need, by the operator's figures; zero for sources and sinks.

    >>> from sluicegate.domain import Edge, Operator
    >>> one = Topology("t", (Operator("a", 9.0, cpu=0.4),), (Edge("source", "a"),))
    >>> footprint(one, "a", 2).cpu, footprint(one, "source", 1).cpu
    (0.8, 0.0)
    """
    if operator not in topology.index:
        return Bundle(operator, threads, 0.0, 0.0)
    known = topology.operator(operator)
    if known.profile is not None:
        return Bundle(operator, threads, *usage(known.profile, threads))
    return Bundle(operator, threads, min(known.cpu * threads, 1.0), min(known.memory * threads, 1.0))
