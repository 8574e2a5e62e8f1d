"""Tracks the room left on the slots of a fleet and the operators of each VM while instances are placed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from sluicegate.domain import Bundle, Placement, Vm
from sluicegate.place.best_fit import SLACK
from sluicegate.place.sweep import Slots


class SlotLedger:
    """Room on the slots, changed by ``put`` and ``remove``. VMs and slots are numbers, in fleet order.

    A ``full`` bundle needs an empty slot and keeps it to itself. ``most_per_slot`` bounds the bundles on a slot.
    """

    def __init__(self, fleet: Sequence[Vm], most_per_slot: int | None = None) -> None:
        self.slots = Slots.of(fleet)
        self.hosts: list[Counter[str]] = [Counter() for _ in fleet]
        self._most = most_per_slot
        self._held: list[list[Bundle]] = [[] for _ in self.slots.names]
        self._slot_use = [(0.0, 0.0)] * len(self.slots.names)
        self._vm_use = [(0.0, 0.0)] * len(fleet)
        self._of_vm: list[list[int]] = [[] for _ in fleet]
        for slot, vm in enumerate(self.slots.vm):
            self._of_vm[vm].append(slot)

    def slot_for(self, vm: int, bundle: Bundle) -> int | None:
        """The VM's first slot with room for the bundle.

        >>> ledger = SlotLedger([Vm("vm-1", 2)])
        >>> ledger.put(0, Bundle("a", 1, 0.7, 0.0))
        >>> ledger.slot_for(0, Bundle("b", 1, 0.3, 0.0)), ledger.slot_for(0, Bundle("b", 1, 0.5, 0.0))
        (0, 1)
        """
        return next((slot for slot in self._of_vm[vm] if self._has_room(slot, bundle)), None)

    def put(self, slot: int, bundle: Bundle) -> None:
        self._held[slot].append(bundle)
        self.hosts[self.slots.vm[slot]][bundle.operator] += 1
        self._recount(slot)

    def remove(self, slot: int, bundle: Bundle) -> None:
        self._held[slot].remove(bundle)
        self.hosts[self.slots.vm[slot]] -= Counter({bundle.operator: 1})
        self._recount(slot)

    def used(self, vm: int) -> tuple[float, float]:
        """CPU and memory that the VM's bundles use, in slots."""
        return self._vm_use[vm]

    def by_room(self) -> list[int]:
        """VMs by free CPU, then free memory, descending; ties in fleet order."""
        pairs = enumerate(zip(self._vm_use, self.slots.fleet, strict=True))
        return [v for _, _, v in sorted((cpu - vm.slots, memory - vm.slots, v) for v, ((cpu, memory), vm) in pairs)]

    def placement(self, reason: str) -> Placement:
        threads = ((slot, b.operator, b.threads) for slot, held in enumerate(self._held) for b in held)
        return self.slots.placement(threads, reason)

    def _has_room(self, slot: int, bundle: Bundle) -> bool:
        held = self._held[slot]
        if held and (bundle.full or held[0].full or len(held) == self._most):
            return False
        cpu, memory = self._slot_use[slot]
        return max(cpu + bundle.cpu, memory + bundle.memory) <= 1 + SLACK

    def _recount(self, slot: int) -> None:
        """Recompute the sums, since incremental updates would accumulate rounding errors."""
        held, vm = self._held[slot], self.slots.vm[slot]
        self._slot_use[slot] = sum(b.cpu for b in held), sum(b.memory for b in held)
        use = [self._slot_use[one] for one in self._of_vm[vm]]
        self._vm_use[vm] = sum(cpu for cpu, _ in use), sum(memory for _, memory in use)
