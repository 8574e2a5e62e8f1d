"""Chooses the machines to rent for a number of slots (model-driven scheduling, Section 7.1).

As many of the largest size as are filled completely, then the smallest size that covers the rest: few machines, so few
rows cross the network. The price is proportional to the slots, so another mix of as many slots costs the same; the last
machine may have unneeded slots.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sluicegate.domain import Vm
from sluicegate.errors import BadInput

VM_SIZES = (1, 2, 4)
"""Slots of the paper's machines: D1, D2, D3."""


@dataclass(frozen=True, slots=True)
class RentedVms:
    """The rented machines, largest first, and their cost."""

    vms: tuple[Vm, ...]
    cost_per_hour: float

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(vm.slots for vm in self.vms)

    @property
    def slots(self) -> int:
        return sum(self.sizes)


def rent(slots: int, sizes: Iterable[int] = VM_SIZES, price_per_slot_hour: float = 0.05) -> RentedVms:
    """The machines for ``slots``; none for 0. Sizes may be in any order, with duplicates.

    >>> rent(15).sizes, rent(5).sizes, rent(7, sizes=(4, 2, 1)).sizes, rent(0).sizes
    ((4, 4, 4, 4), (4, 1), (4, 4), ())
    """
    known = _checked(sizes)
    if slots < 0:
        raise BadInput(f"{slots} slots: give 0 or more")
    if not (math.isfinite(price_per_slot_hour) and price_per_slot_hour >= 0):
        raise BadInput(f"price_per_slot_hour is {price_per_slot_hour}: give a finite price, 0 or more")
    count, rest = divmod(slots, known[-1])
    chosen = [known[-1]] * count
    if rest:
        chosen.append(next(size for size in known if size >= rest))
    vms = tuple(Vm(f"vm-{number}", size) for number, size in enumerate(chosen, start=1))
    return RentedVms(vms, sum(chosen) * price_per_slot_hour)


def _checked(sizes: Iterable[int]) -> Sequence[int]:
    known = sorted(set(sizes))
    if not known:
        raise BadInput("no VM sizes: give at least one, such as 1,2,4")
    if known[0] < 1:
        raise BadInput(f"VM size {known[0]}: give slots per VM of at least 1, such as 1,2,4")
    return known
