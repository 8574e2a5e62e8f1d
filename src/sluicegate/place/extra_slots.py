"""Maps bundles; if that fails, adds one slot and maps again (model-driven scheduling, Section 8.2).

A plan's slots are a lower bound: bundles cannot be split to fill every gap. The result has the fewest extra slots found
by adding one at a time. Counts that must fail are skipped: SAM knows the slots it needs, RSM a number below which no
mapping exists, Es-Stream its instances over those that a slot may hold. Above it every count is tried: that RSM maps on
n slots does not imply that it maps on n + 1, since another fleet changes every distance.

The mapper sees exactly the requested slots. Further slots of the last machine stay in reserve: they are paid for, so
the first extra slots may cost nothing. At most 3 n + 1 are added to n, the plan's slots or the mapper's
fewest if that is more: best fit leaves no two slots whose contents would fit on one, so it never needs more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

from sluicegate.domain import Bundle, Placement, Topology, Vm
from sluicegate.errors import Infeasible
from sluicegate.place.placer import DoesNotFit, Placer
from sluicegate.policy.vms import VM_SIZES, rent


@runtime_checkable
class KnowsFewest(Protocol):
    """A mapper with a lower bound on the slots it needs; ``None``: it fails on any number."""

    def fewest_slots(self, topology: Topology, bundles: Sequence[Bundle]) -> int | None: ...


def place_with_extra_slots(
    placer: Placer,
    topology: Topology,
    bundles: Sequence[Bundle],
    slots: int,
    vm_sizes: Iterable[int] = VM_SIZES,
) -> Placement:
    """The placement on ``slots`` or the fewest more; ``Infeasible`` where none of four times as many is enough.

    >>> from sluicegate.domain import Edge, Operator
    >>> from sluicegate.place.sam import Sam
    >>> one = Topology("t", (Operator("a", 9.0),), (Edge("source", "a"),))
    >>> found = place_with_extra_slots(Sam(), one, [Bundle("a", 1, 0.6, 0.1)] * 3, slots=2)
    >>> found.extra_slots, len(found.slots), [vm.slots for vm in found.vms]
    (1, 3, [4])
    """
    sizes = tuple(vm_sizes)
    first = _place(placer, topology, bundles, slots, sizes)
    if isinstance(first, Placement):
        return first
    least = _fewest(placer, topology, bundles, slots, first)
    most, why = 4 * max(slots, least) + 1, first.why
    for total in range(max(slots + 1, least), most + 1):
        found = _place(placer, topology, bundles, total, sizes)
        if isinstance(found, Placement):
            reason = f"{total - slots} slots more than the {slots} planned: {first.why}"
            return replace(found, extra_slots=total - slots, reasons=(*found.reasons, reason))
        why = found.why
    raise Infeasible(f"{placer.name} maps these bundles on none of {slots} to {most} slots, take another mapper: {why}")


def _place(
    placer: Placer, topology: Topology, bundles: Sequence[Bundle], slots: int, sizes: Sequence[int]
) -> Placement | DoesNotFit:
    fleet = rent(slots, sizes).vms
    found = placer.place(topology, bundles, _trimmed(fleet, slots))
    return replace(found, vms=fleet) if isinstance(found, Placement) else found


def _trimmed(fleet: Sequence[Vm], slots: int) -> list[Vm]:
    """The fleet with its last machine reduced so that it has ``slots`` in total."""
    spare = sum(vm.slots for vm in fleet) - slots
    return [*fleet[:-1], replace(fleet[-1], slots=fleet[-1].slots - spare)] if spare else list(fleet)


def _fewest(placer: Placer, topology: Topology, bundles: Sequence[Bundle], slots: int, first: DoesNotFit) -> int:
    least = placer.fewest_slots(topology, bundles) if isinstance(placer, KnowsFewest) else slots
    if least is None:
        raise Infeasible(f"{placer.name} maps these bundles on no fleet: {first.why}")
    return least
