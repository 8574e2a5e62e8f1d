"""Plans of model-driven scheduling: allocation and mapping of a dataflow, for a rate or for a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from sluicegate.domain import Placement, Proposal, Topology, Vm
from sluicegate.errors import Infeasible
from sluicegate.place.dsm import Dsm
from sluicegate.place.extra_slots import place_with_extra_slots
from sluicegate.place.placer import Placer
from sluicegate.place.rsm import Rsm
from sluicegate.place.sam import Sam
from sluicegate.policy.demand import situation_at
from sluicegate.policy.papers.lsa import Lsa
from sluicegate.policy.papers.mba import Mba

ENDPOINT_MEMORY = 0.15
"""Memory of a source's or sink's thread. The paper's figure is lost; with 15% RSM needs extra slots as often."""

LSA, MBA = Lsa(endpoint_memory=ENDPOINT_MEMORY), Mba(endpoint_memory=ENDPOINT_MEMORY)
DSM, RSM, SAM = Dsm(), Rsm(), Sam()
Planner = Lsa | Mba


@dataclass(frozen=True, slots=True)
class Pair:
    """An allocation with a mapping."""

    planner: Planner
    placer: Placer

    @property
    def name(self) -> str:
        return f"{self.planner.name}+{self.placer.name}".upper()


LSA_DSM, LSA_RSM = Pair(LSA, DSM), Pair(LSA, RSM)
MBA_DSM, MBA_RSM, MBA_SAM = Pair(MBA, DSM), Pair(MBA, RSM), Pair(MBA, SAM)
PAIRS = (LSA_DSM, LSA_RSM, MBA_DSM, MBA_RSM, MBA_SAM)


@dataclass(frozen=True, eq=False, slots=True)
class SlotPlan:
    """The allocated slots and the placement of threads; ``placement`` includes the extra slots."""

    rate_per_s: float
    slots: int
    placement: Placement

    @property
    def extra(self) -> int:
        return self.placement.extra_slots

    @property
    def total(self) -> int:
        return self.slots + self.extra


def plan_for(pair: Pair, topology: Topology, rate_per_s: float) -> SlotPlan:
    """The plan for a rate, with as many slots as needed.

    >>> from sluicegate.lab.reproduce.dataflows import micro
    >>> plan_for(MBA_SAM, micro()["linear"], 100.0).slots
    7
    """
    made = allotted(pair.planner, topology, rate_per_s)
    slots = made.slots or 0
    return SlotPlan(rate_per_s, slots, place_with_extra_slots(pair.placer, topology, made.bundles, slots))


def allotted(planner: Planner, topology: Topology, rate_per_s: float) -> Proposal:
    return planner.propose(None, situation_at(topology, rate_per_s))[1]


def most_on(pair: Pair, topology: Topology, fleet: Sequence[Vm], step_per_s: float = 10.0) -> SlotPlan:
    """The plan for the highest rate, in steps, before the first that does not fit on the fleet."""
    room = sum(vm.slots for vm in fleet)
    last: SlotPlan | None = None
    for step in count(1):
        made = allotted(pair.planner, topology, step * step_per_s)
        slots = made.slots or 0
        found = pair.placer.place(topology, made.bundles, fleet) if slots <= room else None
        if not isinstance(found, Placement):
            break
        last = SlotPlan(step * step_per_s, slots, found)
    if last is None:
        raise Infeasible(f"{pair.name} plans not even {step_per_s:g} rows/s on {room} slots: give more")
    return last
