"""Mc-Stream's scheduling level (algorithm 3): places instances next to their upstream, siblings apart.

Instances upstream first; nodes by free resources, descending. An instance goes to

    1. a node that fits, runs at least one of its upstream's instances and none of its own vertex; else
    2. if siblings are placed, a node that fits and runs none of them; else
    3. the node with most room.

Our reading: 3 also applies if 2 finds no node. The paper's loop until throughput and latency targets are met is one
pass here, as the same input gives the same result: algorithm 4 (``mc_stream_online``) uses later measurements.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sluicegate.domain import Bundle, Placement, Topology, Vm
from sluicegate.place.placer import DoesNotFit
from sluicegate.place.slot_ledger import SlotLedger
from sluicegate.place.sweep import by_task

BESIDE_UPSTREAM = "beside its upstream"
AWAY_FROM_SIBLINGS = "away from its siblings"
MOST_ROOM = "where most room is"


@dataclass(frozen=True, slots=True)
class McStreamPlacer:
    @property
    def name(self) -> str:
        return "mc-stream"

    def place(self, topology: Topology, bundles: Sequence[Bundle], fleet: Sequence[Vm]) -> Placement | DoesNotFit:
        """
        >>> from sluicegate.domain import Edge, Operator
        >>> two = Topology("t", (Operator("a", 9.0), Operator("b", 9.0)), (Edge("source", "a"), Edge("a", "b")))
        >>> need = [Bundle(name, 1, 1.0, 0.0) for name in "aabb"]
        >>> McStreamPlacer().place(two, need, [Vm("n1", 2), Vm("n2", 2)]).slots
        {'n1/1': (('a', 1),), 'n1/2': (('b', 1),), 'n2/1': (('a', 1),), 'n2/2': (('b', 1),)}
        """
        ledger, rules = SlotLedger(fleet), Counter[str]()
        upstream = upstream_of(topology)
        for operator, queue in by_task(topology, bundles, topology.order).items():
            for bundle in queue:
                chosen = choose(ledger, bundle, upstream.get(operator, frozenset()), range(len(fleet)))
                if chosen is None:
                    return DoesNotFit(_why_not(bundle, ledger))
                slot, rule = chosen
                ledger.put(slot, bundle)
                rules[rule] += 1
        told = ", ".join(f"{rules[rule]} {rule}" for rule in (BESIDE_UPSTREAM, AWAY_FROM_SIBLINGS, MOST_ROOM))
        return ledger.placement(f"mc-stream: of {len(bundles)} instances {told}")


def upstream_of(topology: Topology) -> dict[str, frozenset[str]]:
    """The upstream vertices of each vertex, including sources, as those may be placed too."""
    found: dict[str, set[str]] = {}
    for edge in topology.edges:
        if edge.origin != edge.target:
            found.setdefault(edge.target, set()).add(edge.origin)
    return {name: frozenset(origins) for name, origins in found.items()}


def choose(
    ledger: SlotLedger, bundle: Bundle, upstream: Collection[str], allowed: Collection[int]
) -> tuple[int, str] | None:
    """The slot for one instance among the ``allowed`` VMs, and the rule that chose it; ``None`` if none has room."""
    apart = fitting = None
    for vm in ledger.by_room():
        hosts = ledger.hosts[vm]
        sibling = hosts.get(bundle.operator, 0) > 0
        beside = not sibling and any(hosts.get(name, 0) for name in upstream)
        # a search for a slot costs most: only where it may change the answer
        wanted = beside or fitting is None or (apart is None and not sibling)
        slot = ledger.slot_for(vm, bundle) if wanted and vm in allowed else None
        if slot is None:
            continue
        if beside:
            return slot, BESIDE_UPSTREAM
        fitting = slot if fitting is None else fitting
        apart = slot if apart is None and not sibling else apart
    if apart is not None and any(hosts[bundle.operator] for hosts in ledger.hosts):
        return apart, AWAY_FROM_SIBLINGS
    return None if fitting is None else (fitting, MOST_ROOM)


def _why_not(bundle: Bundle, ledger: SlotLedger) -> str:
    fleet = ledger.slots.fleet
    left = max((vm.slots - ledger.used(v)[0] for v, vm in enumerate(fleet)), default=0.0)
    return (
        f"{bundle.operator}: an instance needs {bundle.cpu:.1%} CPU and {bundle.memory:.1%} memory of a slot; none of "
        f"{len(ledger.slots.names)} slots on {len(fleet)} nodes has that left (most CPU left on a node: {left:.1%})"
    )
