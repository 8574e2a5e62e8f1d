"""Es-Stream's node rules on a running pipeline (Eq 19 to 22): instances stay, new ones are placed by measured loads.

    SK <= eta and mean R >= phi     a new instance goes on a node that is not in use, else one more node is requested
    SK >= eta or  mean R <= phi     it goes on the least loaded node in use if Eq 22 holds there, else on any
    SK >= chi and mean R <= zeta    and the rate falls: nodes are released, those taken by scaling out first

R is a node's measured load. A new instance is assumed to use as much as the present ones of its operator (Eq 21). Until
a requested node is up, the instance runs on the least loaded node with a free slot; without one it shares the hosts of
its siblings. The rate falls if it is ``trigger`` below the highest since nodes were last added or released.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sluicegate.domain import NodeObservation, Topology
from sluicegate.place.es_stream import EsStreamPlacer
from sluicegate.place.moving import Moved, WhatRuns, kept_places
from sluicegate.policy.papers.es_stream_nodes import (
    NodeThresholds,
    Shrink,
    Use,
    node_for_instance,
    nodes_to_release,
    use_of_a_new_instance,
)


@dataclass(frozen=True, slots=True)
class EsNodesMemory:
    """Nodes taken by scaling out, oldest first, nodes being released and why, and the rate to compare with."""

    taken: tuple[str, ...] = ()
    leaving: tuple[str, ...] = ()
    rate_per_s: float = 0.0
    why: str = ""
    waiting: tuple[tuple[str, str], ...] = ()
    """Operator and host of each instance that stays on a loaded node until the node requested for it is up."""


@dataclass(frozen=True, slots=True)
class EsStreamMoving(EsStreamPlacer):
    """Es-Stream's placer, which keeps running instances and applies the ``nodes`` rules."""

    nodes: NodeThresholds = field(default_factory=NodeThresholds)
    trigger: float = 0.2

    def move(
        self, memory: EsNodesMemory | None, topology: Topology, running: Mapping[str, int], ground: WhatRuns
    ) -> tuple[EsNodesMemory, Moved]:
        """Apply the node rules once to the measured state."""
        return move_by_nodes(memory, topology, running, ground, self.nodes, self.trigger)


def move_by_nodes(
    memory: EsNodesMemory | None,
    topology: Topology,
    running: Mapping[str, int],
    ground: WhatRuns,
    limits: NodeThresholds,
    trigger: float,
) -> tuple[EsNodesMemory, Moved]:
    """Apply the node rules once: place new instances, else release nodes if the rate falls.

    >>> loads = (NodeObservation("h1", 0.9), NodeObservation("h2", 0.0))
    >>> two = WhatRuns(0.0, {"h1": 2, "h2": 2}, {"a": ("h1",)}, loads)
    >>> from sluicegate.domain import Edge, Operator
    >>> one = Topology("t", (Operator("a", 9.0),), (Edge("source", "a"),))
    >>> move_by_nodes(None, one, {"a": 2}, two, NodeThresholds(), 0.2)[1].places
    {'a': ('h1', 'h2')}
    """
    memory = memory or EsNodesMemory()
    memory = replace(
        memory,
        leaving=tuple(host for host in memory.leaving if host in ground.slots),
        rate_per_s=max(memory.rate_per_s, ground.arrivals_per_s),
    )
    kept, falls = kept_places(ground, running, memory.leaving), _falls(memory, ground, trigger)
    if falls:
        memory = replace(memory, waiting=())
    step = _moved_to_requested(memory, ground, kept)
    board = _Board(topology, ground, limits, kept, memory.leaving)
    _place_new(step, board, topology.order, running)
    if step.missing:
        memory = replace(memory, leaving=(), rate_per_s=ground.arrivals_per_s)
    elif not step.reasons and not memory.leaving:
        released = _release(step, board, falls, limits, sum(running.values()))
        if released is not None:
            leaving, why = released
            memory = replace(memory, leaving=leaving, rate_per_s=ground.arrivals_per_s, why=why)
    if memory.leaving:  # a release takes several ticks, and each change on the way has this reason
        step.reasons.append(memory.why)
    places = {name: tuple(hosts) for name, hosts in board.places.items()}
    nodes = math.ceil(step.missing / max(ground.slots.values(), default=1))  # an added node takes as many as its slots
    memory = replace(memory, taken=tuple(step.taken), waiting=tuple(step.waiting))
    return memory, Moved(places, nodes, memory.leaving, tuple(step.reasons))


@dataclass(slots=True)
class _Step:
    """What a step has found so far: the next memory's ``waiting`` and ``taken``, and instances without a node."""

    waiting: list[tuple[str, str]]
    taken: list[str]
    reasons: list[str]
    missing: int


def _falls(memory: EsNodesMemory, ground: WhatRuns, trigger: float) -> bool:
    return ground.arrivals_per_s < (1 - trigger) * memory.rate_per_s


def _place_new(step: _Step, board: _Board, order: tuple[str, ...], running: Mapping[str, int]) -> None:
    """Place the instances that no node has yet; without a suitable node on the least loaded one, else nowhere."""
    for name in order:
        while len(board.places[name]) < running[name]:
            found, reason = board.put(name)
            step.reasons.append(f"{name}: {reason}")
            if found is not None:
                if found not in step.taken and reason.startswith("bottleneck"):
                    step.taken.append(found)
            elif board.fall_back(name):
                step.missing += 1
                step.waiting.append((name, board.places[name][-1]))
            else:
                step.missing += running[name] - len(board.places[name])  # no slot for the others either
                break


def _release(
    step: _Step, board: _Board, falls: bool, limits: NodeThresholds, processors: int
) -> tuple[tuple[str, ...], str] | None:
    """Nodes to release now and why; their instances move to the least loaded others. ``None`` if there are none."""
    rule = nodes_to_release(board.nodes, falls, step.taken, limits)
    unused = board.unused() if falls else ()
    leaving = board.spare((*unused, *(rule.nodes if isinstance(rule, Shrink) else ())), processors)
    if not leaving:
        return None
    board.leave(leaving)
    step.taken = [host for host in step.taken if host not in leaving]
    return leaving, f"{', '.join(leaving)} left, {rule.reason}"


def _moved_to_requested(memory: EsNodesMemory, ground: WhatRuns, kept: dict[str, list[str]]) -> _Step:
    """Move instances to the nodes requested for them that are up; those that wait on still miss theirs."""
    waiting, taken, reasons = list[tuple[str, str]](), list(memory.taken), list[str]()
    for name, host in memory.waiting:
        if host not in kept.get(name, ()):
            continue
        used = {at for hosts in kept.values() for at in hosts}
        fresh = next((at for at in ground.slots if at not in used and at not in memory.leaving), None)
        if fresh is None:
            waiting.append((name, host))
            continue
        del kept[name][len(kept[name]) - 1 - kept[name][::-1].index(host)]
        kept[name].append(fresh)
        taken.append(fresh)
        reasons.append(f"{name}: {fresh}, requested for it, is up: moves there from {host}")
    return _Step(waiting, taken, reasons, missing=len(waiting))


class _Board:
    """Working state of one step: nodes with their loads and instances."""

    def __init__(
        self,
        topology: Topology,
        ground: WhatRuns,
        limits: NodeThresholds,
        places: dict[str, list[str]],
        without: tuple[str, ...],
    ) -> None:
        self.places, self._limits, self._order = places, limits, topology.order
        self._slots = {host: slots for host, slots in ground.slots.items() if host not in without}
        known = {node.name: node for node in ground.nodes}
        held = {name: Counter(hosts) for name, hosts in places.items()}
        self.nodes = [
            replace(
                known.get(host, NodeObservation(host, 0.0)),
                hosts={name: count[host] for name, count in held.items() if count[host]},
            )
            for host in self._slots
        ]

    def put(self, name: str) -> tuple[str | None, str]:
        """Place a new instance; returns its node, or ``None`` if one must be added, and the reason."""
        use = self._use(name)
        asked = node_for_instance(self.nodes, use, self._limits, self._full())
        if asked.node is not None:
            self._take(name, asked.node, use)
        return asked.node, asked.reason

    def fall_back(self, name: str) -> bool:
        """Place an instance on the least loaded node with a free slot; returns whether there was one."""
        open_nodes = [node for node in self.nodes if node.name not in self._full()]
        if open_nodes:
            self._take(name, min(open_nodes, key=lambda node: node.load).name, self._use(name))
        return bool(open_nodes)

    def unused(self) -> tuple[str, ...]:
        """Nodes without an instance, which the rules do not consider."""
        return tuple(node.name for node in self.nodes if not node.hosts)

    def spare(self, wanted: tuple[str, ...], processors: int) -> tuple[str, ...]:
        """The nodes of ``wanted`` that can be released while every instance keeps a slot."""
        left, found = sum(self._slots.values()), list[str]()
        for host in wanted:
            if left - self._slots[host] >= processors and len(found) + 1 < len(self._slots):
                found.append(host)
                left -= self._slots[host]
        return tuple(found)

    def leave(self, hosts: tuple[str, ...]) -> None:
        """Move the instances of these nodes to the least loaded others."""
        self.nodes = [node for node in self.nodes if node.name not in hosts]
        self._slots = {host: slots for host, slots in self._slots.items() if host not in hosts}
        for name in self._order:
            gone = [host for host in self.places[name] if host in hosts]
            self.places[name] = [host for host in self.places[name] if host not in hosts]
            for _ in gone:
                self.fall_back(name)

    def _full(self) -> list[str]:
        return [node.name for node in self.nodes if sum(node.hosts.values()) >= self._slots[node.name]]

    def _take(self, name: str, host: str, use: Use) -> None:
        self.places[name].append(host)
        self.nodes = [_with(node, name, use) if node.name == host else node for node in self.nodes]

    def _use(self, name: str) -> Use:
        """Eq 21: the mean over its present instances of an equal share of their node's load."""
        parts = [
            Use(node.cpu / count, node.memory / count, node.io / count)
            for node in self.nodes
            if node.hosts.get(name)
            for count in [sum(node.hosts.values())]
            for _ in range(node.hosts[name])
        ]
        return use_of_a_new_instance(parts) if parts else Use(0.0)


def _with(node: NodeObservation, name: str, use: Use) -> NodeObservation:
    hosts = {**node.hosts, name: node.hosts.get(name, 0) + 1}
    return replace(node, cpu=node.cpu + use.cpu, memory=node.memory + use.memory, io=node.io + use.io, hosts=hosts)
