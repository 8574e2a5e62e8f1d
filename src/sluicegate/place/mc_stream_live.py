"""Mc-Stream's algorithms 3 and 4 on a running pipeline: new instances by algorithm 3, then moves by measured load.

Algorithm 3 repeats until targets are met, which is known only after the next measurement. So each call moves at most
``most_moves`` instances (``mc_stream_online``), and the next comes at least ``wait_s`` later and not before a batch of
each operator moved has begun and ended at its new places: hot instances and the ends of hot edges while a latency goal
is missed, cold instances are packed while nodes idle. A host without an instance is released while the goal is met.

On Spark the steps of a move (``redeployment``) are: executors of the target are warm before they are in ``slots``; the
instance's rows wait on its edge from one batch to the next; its state is loaded by the target from the checkpoint that
the last batch committed; the next batch runs there; the old executor finishes its tasks before it is removed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

from sluicegate.domain import Bundle, Placement, Topology, Vm
from sluicegate.place.mc_stream import McStreamPlacer, choose, upstream_of
from sluicegate.place.mc_stream_online import Measured, OnlineRules, Redeployment, redeploy
from sluicegate.place.moving import Moved, WhatRuns, kept_places
from sluicegate.place.placer import DoesNotFit
from sluicegate.place.redeployment import steps_without_loss
from sluicegate.place.slot_ledger import SlotLedger
from sluicegate.place.sweep import by_task


@dataclass(frozen=True, slots=True)
class McMovesMemory:
    """The time of the last move, the hosts that packing has emptied, and what has to end before the next move.

    ``awaited`` has the batches still to end of each operator moved: the one under way then, and one at the new places.
    """

    moved_at_s: float | None = None
    leaving: tuple[str, ...] = ()
    awaited: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class McStreamMoving(McStreamPlacer):
    """Mc-Stream's placer, which moves running instances by algorithm 4."""

    moving: Mapping[str, Any] = field(default_factory=dict)
    """Fields of ``OnlineRules`` that differ from the defaults."""
    wait_s: float = 20.0
    scheduling: bool = True
    """Whether new instances are placed by algorithm 3; else round robin over the nodes."""
    online: bool = True
    """Whether instances are moved by algorithm 4, and hosts released."""

    def place(self, topology: Topology, bundles: Sequence[Bundle], fleet: Sequence[Vm]) -> Placement | DoesNotFit:
        """Place all instances from scratch."""
        if self.scheduling:
            return McStreamPlacer().place(topology, bundles, fleet)
        return in_turn(topology, bundles, fleet)

    def move(
        self, memory: McMovesMemory | None, topology: Topology, running: Mapping[str, int], ground: WhatRuns
    ) -> tuple[McMovesMemory, Moved]:
        """Place new instances and move running ones by their measured load."""
        rules = OnlineRules(**self.moving) if self.online else None
        return move_online(memory, topology, running, ground, rules, self.wait_s, self.scheduling)


def in_turn(topology: Topology, bundles: Sequence[Bundle], fleet: Sequence[Vm]) -> Placement | DoesNotFit:
    """Place instances upstream first, round robin over the nodes, as a default scheduler does.

    >>> from sluicegate.domain import Edge, Operator
    >>> two = Topology("t", (Operator("a", 9.0), Operator("b", 9.0)), (Edge("source", "a"), Edge("a", "b")))
    >>> in_turn(two, [_bundle(name) for name in "aab"], [Vm("n1", 2), Vm("n2", 2)]).slots
    {'n1/1': (('a', 1),), 'n1/2': (('b', 1),), 'n2/1': (('a', 1),), 'n2/2': ()}
    """
    ledger = SlotLedger(fleet)
    for queue in by_task(topology, bundles, topology.order).values():
        for bundle in queue:
            slot = next_in_turn(ledger, bundle)
            if slot is None:
                return DoesNotFit(f"{len(bundles)} instances and {len(ledger.slots.names)} slots on {len(fleet)} nodes")
            ledger.put(slot, bundle)
    return ledger.placement(f"in turn: {len(bundles)} instances over {len(fleet)} nodes")


def next_in_turn(ledger: SlotLedger, bundle: Bundle) -> int | None:
    """A slot of the first node with the fewest instances that has room; ``None`` if there is none."""
    nodes = sorted(range(len(ledger.hosts)), key=lambda vm: (ledger.hosts[vm].total(), vm))
    rooms = (ledger.slot_for(vm, bundle) for vm in nodes)
    return next((slot for slot in rooms if slot is not None), None)


def move_online(
    memory: McMovesMemory | None,
    topology: Topology,
    running: Mapping[str, int],
    ground: WhatRuns,
    rules: OnlineRules | None,
    wait_s: float,
    scheduling: bool = True,
) -> tuple[McMovesMemory, Moved]:
    """Place new instances by algorithm 3; if there are none and ``wait_s`` has passed, run algorithm 4 once.

    Without ``rules`` no running instance is moved; without ``scheduling`` new ones go round robin over the nodes.
    """
    memory = _with_ended(memory or McMovesMemory(ground.now_s), ground)
    leaving = tuple(host for host in memory.leaving if host in ground.slots)
    kept = kept_places(ground, running, leaving)
    fleet = [Vm(host, slots) for host, slots in sorted(ground.slots.items()) if host not in leaving]
    if leaving and sum(vm.slots for vm in fleet) < sum(running.values()):
        return move_online(replace(memory, leaving=()), topology, running, ground, rules, wait_s, scheduling)
    ledger, placed = SlotLedger(fleet), _placed(topology, running, kept, fleet, scheduling)
    reasons = [f"{name} {host}: {why}" for name, host, why in placed.new]
    now = _placement(ledger, placed.slots)
    if (
        rules is None
        or reasons
        or placed.missing
        or ground.now_s - (memory.moved_at_s or 0.0) < wait_s
        or memory.awaited
    ):
        awaited = {**memory.awaited, **_awaited(ground, {name for name, _, _ in placed.new})}
        moved_at_s = ground.now_s if reasons else memory.moved_at_s
        memory = replace(memory, leaving=leaving, moved_at_s=moved_at_s, awaited=awaited)
        return memory, Moved(_hosts(topology, now), 0, leaving, (*reasons, *_released(leaving)))
    # a task occupies a slot, however little of a core it uses
    whole = topology.with_operators(tuple(replace(o, cpu=1.0, memory=0.0, profile=None) for o in topology.operators))
    loads = _loads(ground, placed.slots)
    found = redeploy(whole, now, Measured(loads, ground.edges_per_s, _speeds(loads)), ground.late, rules)
    places = _hosts(topology, found.placement)
    used = {host for hosts in places.values() for host in hosts}
    empty = tuple(vm.name for vm in fleet if vm.name not in used) if not ground.late else ()
    moved_at_s = ground.now_s if found.moves or empty else memory.moved_at_s
    awaited = _awaited(ground, {move.operator for move in found.moves})
    memory = McMovesMemory(moved_at_s, (*leaving, *empty), awaited)
    told = _told(topology, found) if found.moves else ()
    return memory, Moved(places, 0, memory.leaving, (*told, *_released(memory.leaving)))


def _awaited(ground: WhatRuns, moved: Collection[str]) -> dict[str, int]:
    return {name: 2 for name in moved if name in ground.ended}


def _with_ended(memory: McMovesMemory, ground: WhatRuns) -> McMovesMemory:
    """The memory without the batches that have ended since, and without operators that no longer run."""
    if not memory.awaited:
        return memory
    left = {name: n - ground.ended[name] for name, n in memory.awaited.items() if name in ground.ended}
    return replace(memory, awaited={name: n for name, n in left.items() if n > 0})


def _released(hosts: tuple[str, ...]) -> tuple[str, ...]:
    return (f"{', '.join(hosts)} without an instance: released",) if hosts else ()


@dataclass(frozen=True, slots=True)
class _Placed:
    """Slots of every instance by operator (in order), the new ones, and whether some had no room."""

    slots: Mapping[str, tuple[str, ...]]
    new: tuple[tuple[str, str, str], ...]
    missing: bool


def _placed(
    topology: Topology,
    running: Mapping[str, int],
    kept: Mapping[str, list[str]],
    fleet: list[Vm],
    scheduling: bool,
) -> _Placed:
    ledger, upstream = SlotLedger(fleet), upstream_of(topology)
    names = list(ledger.slots.names)
    vm_of = {vm.name: v for v, vm in enumerate(fleet)}
    slots: dict[str, list[str]] = {name: [] for name in topology.names}
    for name in topology.order:
        for host in kept[name]:
            slot = ledger.slot_for(vm_of[host], _bundle(name))
            if slot is not None:
                ledger.put(slot, _bundle(name))
                slots[name].append(names[slot])
    new, missing = list[tuple[str, str, str]](), False
    for name in topology.order:
        while len(slots[name]) < running[name]:
            chosen = _chosen(ledger, _bundle(name), upstream.get(name, frozenset()), scheduling)
            if chosen is None:
                missing = True
                break
            slot, rule = chosen
            ledger.put(slot, _bundle(name))
            slots[name].append(names[slot])
            new.append((name, names[slot], rule))
    return _Placed({name: tuple(found) for name, found in slots.items()}, tuple(new), missing)


def _chosen(ledger: SlotLedger, bundle: Bundle, upstream: Collection[str], scheduling: bool) -> tuple[int, str] | None:
    if scheduling:
        return choose(ledger, bundle, upstream, range(len(ledger.hosts)))
    slot = next_in_turn(ledger, bundle)
    return None if slot is None else (slot, "in turn")


def _bundle(name: str) -> Bundle:
    return Bundle(name, 1, cpu=1.0, memory=0.0)


def _placement(ledger: SlotLedger, slots: Mapping[str, tuple[str, ...]]) -> Placement:
    number = {name: slot for slot, name in enumerate(ledger.slots.names)}
    for operator, own in slots.items():
        for slot in own:
            ledger.put(number[slot], _bundle(operator))
    return ledger.placement("as it runs")


def _loads(ground: WhatRuns, slots: Mapping[str, tuple[str, ...]]) -> dict[tuple[str, str], float]:
    return {
        (name, slot): load
        for name, own in slots.items()
        if len(ground.loads.get(name, ())) == len(own)
        for slot, load in zip(own, ground.loads[name], strict=True)
    }


def _speeds(loads: Mapping[tuple[str, str], float]) -> dict[str, float]:
    """The speed of each host (p of the paper), 1 for the fastest, by how long siblings take for the same rows.

    >>> _speeds({("a", "h1/1"): 0.9, ("a", "h2/1"): 0.3, ("b", "h2/2"): 0.5})
    {'h1': 0.3333333333333333, 'h2': 1.0}
    """
    least = dict[str, float]()
    for (name, _), load in loads.items():
        least[name] = min(load, least.get(name, load))
    found: dict[str, list[float]] = {}
    for (name, slot), load in loads.items():
        found.setdefault(slot.rpartition("/")[0], []).append(least[name] / load if load > 0 else 1.0)
    return {host: fmean(speeds) for host, speeds in found.items() if min(speeds) > 0}


def _hosts(topology: Topology, placement: Placement) -> dict[str, tuple[str, ...]]:
    return {
        name: tuple(slot.rpartition("/")[0] for slot, n in placement.threads(name).items() for _ in range(n))
        for name in topology.names
    }


def _told(topology: Topology, found: Redeployment) -> tuple[str, ...]:
    steps = [steps_without_loss(topology, move.operator, move.origin, move.target) for move in found.moves]
    told = (
        f"{move.reason} (in {len(own)} steps: {own[0].act.value}, ..., {own[-1].act.value})"
        for move, own in zip(found.moves, steps, strict=True)
    )
    return (found.reason, *told)
