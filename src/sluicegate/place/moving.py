"""What a placer is that goes on from where instances run now, by what was measured of nodes and instances.

A placer of ``placer`` maps all instances anew. Es-Stream's node rules and Mc-Stream's algorithm 4 instead say for each
instance whether it stays, where a new one goes, whether the nodes suffice, and which of them may go.
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
    """What runs now. ``slots`` of every host that takes tasks; ``loads`` of each instance as a share of its slot."""

    now_s: float
    slots: Mapping[str, int]
    places: Hosts
    nodes: tuple[NodeObservation, ...] = ()
    arrivals_per_s: float = 0.0
    late: bool = False
    loads: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    edges_per_s: Mapping[tuple[str, str], float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Moved:
    """Where instances go from now on, how many nodes are missing, the hosts that should be left, and why."""

    places: Hosts
    more_nodes: int = 0
    leaving: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()


@runtime_checkable
class MovingPlacer(Protocol):
    """A placer that knows how to go on from what runs; ``memory`` is whatever it returned the last time."""

    def move(self, memory: Any, topology: Topology, running: Mapping[str, int], ground: WhatRuns) -> tuple[Any, Moved]:
        """Where ``running`` instances of each operator go."""
        ...


def ground_of(situation: Situation, slots: Mapping[str, int], places: Hosts, late: bool) -> WhatRuns:
    """The ground as an observation shows it."""
    topology, arrivals = situation.topology, situation.operator_arrivals_per_s
    loads = {name: _loads(situation, name) for name in topology.names}
    edges = {
        (edge.origin, edge.target): arrivals.get(edge.origin, 0.0) * edge.selectivity for edge in topology.inner_edges
    }
    seen = situation.observation.nodes
    return WhatRuns(situation.now_s, slots, places, seen, situation.arrivals_per_s, late, loads, edges)


def _loads(situation: Situation, name: str) -> tuple[float, ...]:
    """The share of time that each instance works; a slower one of the same batch works longer."""
    seen, k = situation.observation.of(name), situation.running.get(name, 1)
    busy = seen.utilisation
    if busy is None:
        return ()
    speeds = seen.instance_per_s
    if len(speeds) != k or min(speeds, default=0.0) <= 0:
        return (busy,) * k
    return tuple(busy * min(speeds) / speed for speed in speeds)


def kept_places(ground: WhatRuns, running: Mapping[str, int], without: tuple[str, ...] = ()) -> dict[str, list[str]]:
    """The present instances that stay: not more than are wanted, where there are slots, and not on ``without``.

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
