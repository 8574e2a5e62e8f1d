"""Maps model-driven scheduling to executors: an executor is a slot, its task slots are the slot's threads.

LSA and MBA propose bundles of threads; a mapper (DSM, RSM, SAM) places them on slots, adding slots one by one where it
fails. That gives the number of executors. The same mapper then places the bundles on the warm executors: every task of
an operator prefers ONE executor, which Spark honours for as long as ``spark.locality.wait``.

With slot-aware routing a task on slot s gets rows in proportion to I(q_s)/q_s, with even routing all get equally many.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sluicegate.control.capacity import Capacity, Places, nodes_for, on_one_node, told
from sluicegate.control.governor import held
from sluicegate.control.rules import Ledger
from sluicegate.domain import Bundle, Change, ExecutorSeen, FleetSeen, Operator, Placement, Proposal, Topology, Vm
from sluicegate.errors import Infeasible
from sluicegate.model.mapping_rate import Routing, task_rate
from sluicegate.model.task_profile import corrected, peak, usage
from sluicegate.place.extra_slots import place_with_extra_slots
from sluicegate.place.placer import DoesNotFit, Placer
from sluicegate.policy.allotment import slots_for

Shares = Mapping[str, tuple[float, ...]]


@dataclass(frozen=True, slots=True)
class SlotMapping:
    """The mapper of threads to executor slots, and how rows are distributed over them."""

    placer: Placer
    routing: Routing = Routing.EVEN


def slots_and_places(
    ledger: Ledger,
    now_s: float,
    topology: Topology,
    mapping: SlotMapping,
    proposal: Proposal,
    running: Mapping[str, int],
    fleet: FleetSeen,
    places: Places,
    waited_s: float = 0.0,
) -> tuple[Ledger, Capacity, Shares]:
    """Decide executors, nodes, the executor of every task and the shares of rows for ``running``."""
    bundles = bundles_for(topology, proposal, running)
    slots, extra, why = _slots(topology, mapping.placer, bundles, on_one_node(fleet))
    shape = fleet.shape
    have = fleet.requested if fleet.requested is not None else len(fleet.executors)
    ledger, want = held(ledger, now_s, shape.within(slots), have, shape.settle_s, waited_s)
    nodes, leaving = nodes_for(fleet, want)
    found, mapped = _mapped(topology, mapping.placer, bundles, fleet)
    shares = shares_for(topology, mapped, mapping.routing) if mapped else {}
    changes = []
    if want != have:
        reason = f"{sum(running.values())} threads need {slots} slots by {mapping.placer.name}"
        reason += f", {extra} of them extra: {why}" if extra else ""
        changes.append(Change("executors", str(have), str(want), reason))
    if nodes is not None and fleet.nodes is not None and nodes != len(fleet.nodes):
        changes.append(Change("nodes", str(len(fleet.nodes)), str(nodes), f"{want} slots are rented as {nodes} nodes"))
    if dict(found) != dict(places):
        reason = f"mapped by {mapping.placer.name}: {told(found)}" if mapped else "Spark chooses the hosts: no room"
        changes.append(Change("places", told(places), told(found), reason))
    short = (
        f"{mapping.placer.name} needs {slots} slots and there may be {shape.most} executors: until it fits, "
        "Spark chooses where tasks run; allow more --executors, or feed less"
        if slots > shape.most
        else ""
    )
    return ledger, Capacity(want, nodes, leaving, found, tuple(changes), short=short), shares


def bundles_for(topology: Topology, proposal: Proposal, running: Mapping[str, int]) -> list[Bundle]:
    """The proposal's bundles; for an operator that the governor kept at another size, bundles of that size."""
    kept = [b for b in proposal.bundles if _as_proposed(b.operator, proposal, running)]
    others = [n for n in topology.names if not _as_proposed(n, proposal, running)]
    return [*kept, *(bundle for name in others for bundle in _cut(topology.operator(name), running[name]))]


def _as_proposed(name: str, proposal: Proposal, running: Mapping[str, int]) -> bool:
    return name not in running or running[name] == proposal.processors.get(name)


def _cut(operator: Operator, threads: int) -> list[Bundle]:
    """Full bundles of tau_hat threads and one bundle for the remaining threads."""
    profile, _ = corrected(operator)
    top = peak(profile)
    full, rest = divmod(threads, top.threads)
    bundles = [Bundle(operator.name, top.threads, 1.0, 1.0, full=True)] * full
    return [*bundles, *([Bundle(operator.name, rest, *usage(profile, rest))] if rest else [])]


def shares_for(topology: Topology, mapped: Placement, routing: Routing) -> Shares:
    """By operator, the share of each task, in the order of its places; no entry if all are equal.

    >>> from sluicegate.domain import Edge, ProfilePoint, TaskProfile
    >>> profile = TaskProfile("a", (ProfilePoint(1, 10.0, 0.1, 0.1), ProfilePoint(2, 12.0, 0.2, 0.1)))
    >>> one = Topology("t", (Operator("a", 10.0, profile=profile),), (Edge("source", "a"),))
    >>> where = Placement((Vm("h", 2),), {"h/1": (("a", 2),), "h/2": (("a", 1),)})
    >>> [round(share, 3) for share in shares_for(one, where, Routing.SLOT_AWARE)["a"]]
    [0.273, 0.273, 0.455]
    >>> shares_for(one, where, Routing.EVEN)
    {}
    """
    if routing is Routing.EVEN:
        return {}
    found = {}
    for operator in topology.operators:
        threads = mapped.threads(operator.name)
        rates = task_rate(corrected(operator)[0], threads)
        by_slot = rates.shares(routing)
        each = tuple(by_slot[slot] / count for slot, count in threads.items() for _ in range(count))
        if not operator.stateful and each and max(each) > min(each) * (1 + 1e-9):
            found[operator.name] = each
    return found


def _slots(topology: Topology, placer: Placer, bundles: Sequence[Bundle], on_one: int) -> tuple[int, int, str]:
    """The slots that the mapper needs, how many of them are extra, and the reason."""
    planned = slots_for(bundles)
    try:
        found = place_with_extra_slots(placer, topology, bundles, planned, (on_one,))
    except Infeasible as problem:
        return planned, 0, str(problem)
    return planned + found.extra_slots, found.extra_slots, found.reasons[-1] if found.reasons else ""


def _mapped(
    topology: Topology, placer: Placer, bundles: Sequence[Bundle], fleet: FleetSeen
) -> tuple[Places, Placement | None]:
    """The executor of every task, and the mapping itself; empty while the bundles do not fit the warm executors."""
    hosts: dict[str, list[ExecutorSeen]] = {}
    for one in sorted(fleet.warm, key=lambda one: (one.host, len(one.id), one.id)):
        hosts.setdefault(one.host, []).append(one)
    found = placer.place(topology, bundles, [Vm(host, len(here)) for host, here in hosts.items()])
    if isinstance(found, DoesNotFit):
        return {}, None
    named = {f"{host}/{n}": one for host, here in hosts.items() for n, one in enumerate(here, start=1)}
    places = {
        name: tuple(named[slot].place for slot, count in found.threads(name).items() for _ in range(count))
        for name in topology.names
    }
    return places, found
