"""Derives executors, nodes and placement from processors: how many are needed, and the host of each processor.

A processor is a slot, an executor a machine of several slots. The placer first places the processors on hypothetical
executors, which gives their number and with it the number of nodes. Increases are requested at once. Decreases are
delayed (``held``), since a removed executor takes long to start again; the time that the processors waited in the
governor's window counts towards the delay. Then the placer places the processors on the hosts of the warm executors,
which gives the preferred locations of each operator's tasks.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sluicegate.control.governor import held
from sluicegate.control.rules import Ledger
from sluicegate.domain import Bundle, Change, FleetSeen, NodeSeen, Situation, Topology, Vm
from sluicegate.errors import Infeasible
from sluicegate.place.extra_slots import place_with_extra_slots
from sluicegate.place.moving import Moved, MovingPlacer, ground_of
from sluicegate.place.placer import DoesNotFit, Placer

Places = Mapping[str, tuple[str, ...]]
"""By operator, the host of each of its processors."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """Executors, nodes and placement of a plan, with the changes from the current ones."""

    executors: int
    nodes: int | None
    leaving: tuple[str, ...]
    places: Places
    changes: tuple[Change, ...]
    memory: Any = None
    """Memory of a ``MovingPlacer``."""
    short: str = ""
    """The shortage, if the plan needs more executors than allowed."""


def capacity_for(
    ledger: Ledger,
    now_s: float,
    topology: Topology,
    placer: Placer,
    running: Mapping[str, int],
    fleet: FleetSeen,
    places: Places,
    more_nodes: int = 0,
    whole_nodes: int | None = None,
    seen: Situation | None = None,
    memory: Any = None,
    late: bool = False,
    waited_s: float = 0.0,
) -> tuple[Ledger, Capacity]:
    """The executors, nodes and places for ``running``; ``places`` are the current ones.

    ``more_nodes`` are requested for their cores, on top of what the slots need. ``whole_nodes`` is the number of nodes
    from a policy that decides nodes itself: the executors are then those that fit on them, without delay. A
    ``MovingPlacer`` uses the situation ``seen`` and the ``memory`` that it last returned. ``waited_s`` is how long
    fewer processors had sufficed before the governor removed them.
    """
    shape = fleet.shape
    memory, moved = _moved(topology, placer, running, fleet, places, seen, memory, late)
    if moved is None:
        for_slots = executors_for(topology, placer, running, shape.slots_per_executor)
        found, why = places_for(topology, placer, running, fleet)
    else:
        stay = sum(one.host not in moved.leaving for one in fleet.executors)
        for_slots = max(-(-sum(running.values()) // shape.slots_per_executor), stay)
        found, why, more_nodes = moved.places, "; ".join(moved.reasons), more_nodes + moved.more_nodes
    have = fleet.requested if fleet.requested is not None else len(fleet.executors)
    if whole_nodes is None:
        needed = shape.within(for_slots + more_nodes * on_one_node(fleet))
        ledger, want = held(ledger, now_s, needed, have, shape.settle_s, waited_s)
    else:
        want = shape.within(whole_nodes * on_one_node(fleet))
    nodes, leaving = nodes_for(fleet, want)
    if moved is not None and moved.leaving and fleet.nodes is not None:
        leaving = tuple(dict.fromkeys((*leaving, *(n.name for n in fleet.nodes if n.host in moved.leaving))))
        nodes = len(fleet.nodes) - len(leaving)
    changes = []
    if want != have:
        total = sum(running.values())
        reason = f"{total} processors need {shape.within(for_slots)} executors of {shape.slots_per_executor} slots"
        reason += f", and their batches the cores of {more_nodes} more nodes" if more_nodes else ""
        reason += f"; {why}" if moved is not None and why else ""
        if whole_nodes is not None:
            reason = f"{whole_nodes} nodes were decided, each with {on_one_node(fleet)} executors"
        changes.append(Change("executors", str(have), str(want), reason))
    if nodes is not None and fleet.nodes is not None and nodes != len(fleet.nodes):
        reason = f"{want} executors do not need {', '.join(leaving)}" if leaving else _no_room(fleet, want)
        changes.append(Change("nodes", str(len(fleet.nodes)), str(nodes), reason))
    if dict(found) != dict(places):
        changes.append(Change("places", told(places), told(found), why))
    return ledger, Capacity(want, nodes, leaving, found, tuple(changes), memory)


def _moved(
    topology: Topology,
    placer: Placer,
    running: Mapping[str, int],
    fleet: FleetSeen,
    places: Places,
    seen: Situation | None,
    memory: Any,
    late: bool,
) -> tuple[Any, Moved | None]:
    """The moves of a ``MovingPlacer``; ``None`` for other placers, before the first placement and while executors warm
    up."""
    known = bool(places) and all(places.get(name) for name in topology.names)
    if seen is None or not known or not isinstance(placer, MovingPlacer) or len(fleet.warm) < len(fleet.executors):
        return memory, None
    slots = Counter[str]()
    for executor in fleet.warm:
        slots[executor.host] += executor.slots
    return placer.move(memory, topology, running, ground_of(seen, slots, places, late))


def executors_for(topology: Topology, placer: Placer, running: Mapping[str, int], slots_per_executor: int) -> int:
    """The number of executors of that size that the placer needs.

    >>> from sluicegate.domain import Edge, Operator
    >>> from sluicegate.place.mc_stream import McStreamPlacer
    >>> two = Topology("t", (Operator("a", 9.0), Operator("b", 9.0)), (Edge("source", "a"), Edge("a", "b")))
    >>> executors_for(two, McStreamPlacer(), {"a": 3, "b": 2}, 2)
    3
    """
    needed = _bundles(topology, running)
    try:
        found = place_with_extra_slots(placer, topology, needed, len(needed), (slots_per_executor,))
    except Infeasible:
        return -(-len(needed) // slots_per_executor)
    return len(found.vms)


def nodes_for(fleet: FleetSeen, executors: int) -> tuple[int | None, tuple[str, ...]]:
    """The number of nodes for ``executors``, and the names of empty nodes to release once no request is pending.

    >>> from sluicegate.domain import ExecutorSeen, Shape
    >>> two = (NodeSeen("n1", 1, "h1"), NodeSeen("n2", 1, "h2"))
    >>> seen = FleetSeen(Shape(1, 1, 4), (ExecutorSeen("h2", 1),), two)
    >>> nodes_for(seen, 3), nodes_for(seen, 1)
    ((3, ()), (1, ('n1',)))
    """
    nodes, shape = fleet.nodes, fleet.shape
    if nodes is None:
        return None, ()
    slots = [node.slots for node in nodes]
    missing = executors - shape.on(slots)
    if missing > 0:
        return len(nodes) + math.ceil(missing / on_one_node(fleet)), ()
    if not fleet.complete or len(fleet.executors) > executors:
        return len(nodes), ()  # executors change first; which nodes become empty is known only afterwards
    return _without_empty(fleet, nodes, executors)


def _without_empty(fleet: FleetSeen, nodes: tuple[NodeSeen, ...], executors: int) -> tuple[int, tuple[str, ...]]:
    """Release nodes without an executor, newest first, as long as the others have room for all executors."""
    shape, used = fleet.shape, Counter(one.host for one in fleet.executors)
    spare, leaving = shape.on(n.slots for n in nodes) - executors, list[str]()
    for node in reversed(nodes):
        room = shape.on([node.slots])
        if not used[node.host] and room <= spare and len(leaving) + 1 < len(nodes):
            leaving.append(node.name)
            spare -= room
    return len(nodes) - len(leaving), tuple(leaving)


def places_for(topology: Topology, placer: Placer, running: Mapping[str, int], fleet: FleetSeen) -> tuple[Places, str]:
    """A host for every processor on the warm executors, and the reason.

    While not every processor has a slot of its own, Spark chooses; among the hosts of warm executors if some are cold.
    """
    slots = Counter[str]()
    for executor in fleet.warm:
        slots[executor.host] += executor.slots
    cold = len(fleet.executors) - len(fleet.warm)
    found = placer.place(topology, _bundles(topology, running), [Vm(host, n) for host, n in sorted(slots.items())])
    if not isinstance(found, DoesNotFit):
        hosts = {name: _hosts(found.threads(name)) for name in topology.names}
        return hosts, f"placed by {placer.name}: {told(hosts)}"
    waits = f", {cold} executors are warming up" if cold else ""
    anywhere = dict.fromkeys(topology.names, tuple(sorted(slots))) if cold and slots else {}
    return anywhere, f"Spark chooses the hosts: {found.why}{waits}"


def told(places: Places) -> str:
    """Places in readable form.

    >>> told({"a": ("h1", "h2", "h1")})
    'a on 2 x h1, h2'
    """
    times = {name: Counter(hosts).items() for name, hosts in places.items()}
    parts = (
        f"{name} on {', '.join(h if n == 1 else f'{n} x {h}' for h, n in counted)}" for name, counted in times.items()
    )
    return "; ".join(parts) or "Spark's choice"


def _bundles(topology: Topology, running: Mapping[str, int]) -> list[Bundle]:
    """One bundle of a whole slot per processor: a Spark task occupies a slot, however little CPU it uses."""
    return [Bundle(name, 1, cpu=1.0, memory=0.0) for name in topology.names for _ in range(running[name])]


def _hosts(threads: Mapping[str, int]) -> tuple[str, ...]:
    """
    >>> _hosts({"127.0.0.2/1": 1, "127.0.0.2/2": 1, "127.0.0.3/1": 1})
    ('127.0.0.2', '127.0.0.2', '127.0.0.3')
    """
    return tuple(slot.rpartition("/")[0] for slot, count in threads.items() for _ in range(count))


def on_one_node(fleet: FleetSeen) -> int:
    """The executors that fit on one more node, assumed as large as the largest existing one."""
    largest = max((node.slots for node in fleet.nodes or ()), default=fleet.shape.slots_per_executor)
    return max(fleet.shape.on([largest]), 1)


def _no_room(fleet: FleetSeen, executors: int) -> str:
    missing = executors - fleet.shape.on(n.slots for n in fleet.nodes or ())
    return f"no room for {missing} executors"
