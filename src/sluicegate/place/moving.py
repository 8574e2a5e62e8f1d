"""The interface of incremental placers, which start from the running placement and measured loads.

A plain ``Placer`` maps all instances from scratch. Es-Stream's node rules and Mc-Stream's algorithm 4 instead decide
which instances stay, where new ones go, whether the nodes suffice, and which nodes can be released.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from sluicegate.domain import NodeObservation, Situation, Topology

Hosts = Mapping[str, tuple[str, ...]]
"""By operator, the host of each of its instances."""


@dataclass(frozen=True, slots=True)
class WhatRuns:
    """The running placement: ``slots`` of every host that takes tasks, ``loads`` of instances as shares of a slot.

    ``ended`` counts, by operator in batches, those that ended since the last call.
    """

    now_s: float
    slots: Mapping[str, int]
    places: Hosts
    nodes: tuple[NodeObservation, ...] = ()
    arrivals_per_s: float = 0.0
    late: bool = False
    loads: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    edges_per_s: Mapping[tuple[str, str], float] = field(default_factory=dict)
    ended: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Moved:
    """The new placement, the number of missing nodes, the hosts to release, and the reasons."""

    places: Hosts
    more_nodes: int = 0
    leaving: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()


@runtime_checkable
class MovingPlacer(Protocol):
    """A placer that starts from the running placement; ``memory`` is what it returned the last time."""

    def move(self, memory: Any, topology: Topology, running: Mapping[str, int], ground: WhatRuns) -> tuple[Any, Moved]:
        """Place ``running`` instances of each operator."""
        ...


def ground_of(situation: Situation, slots: Mapping[str, int], places: Hosts, late: bool) -> WhatRuns:
    """The running placement with the loads of the situation's observation."""
    topology, arrivals = situation.topology, situation.operator_arrivals_per_s
    loads = {name: _loads(situation, name) for name in topology.names}
    edges = {
        (edge.origin, edge.target): arrivals.get(edge.origin, 0.0) * edge.selectivity for edge in topology.inner_edges
    }
    seen = situation.observation
    ended = {o.name: len(seen.of(o.name).batches) for o in topology.operators if o.batch is not None}
    return WhatRuns(situation.now_s, slots, places, seen.nodes, situation.arrivals_per_s, late, loads, edges, ended)


def _loads(situation: Situation, name: str) -> tuple[float, ...]:
    """The busy share of each instance; a slower instance of the same batch is busy for longer."""
    seen, k = situation.observation.of(name), situation.running.get(name, 1)
    busy = seen.utilisation
    if busy is None:
        return ()
    speeds = seen.instance_per_s
    if len(speeds) != k or min(speeds, default=0.0) <= 0:
        return (busy,) * k
    return tuple(busy * min(speeds) / speed for speed in speeds)


def kept_places(ground: WhatRuns, running: Mapping[str, int], without: tuple[str, ...] = ()) -> dict[str, list[str]]:
    """The present instances that stay: at most ``running``, only where slots exist, and not on ``without``.

    >>> ground = WhatRuns(0.0, {"h1": 2, "h2": 1}, {"a": ("h1", "h2", "gone", "h1")})
    >>> kept_places(ground, {"a": 2}), kept_places(ground, {"a": 4}, ("h2",))
    ({'a': ['h1', 'h2']}, {'a': ['h1', 'h1']})
    """
    free, kept = Counter(ground.slots), dict[str, list[str]]()
    for name, k in running.items():
        kept[name] = []
        for host in ground.places.get(name, ()):
            if len(kept[name]) < k and free[host] > 0 and host not in without:
                kept[name].append(host)
                free[host] -= 1
    return kept
