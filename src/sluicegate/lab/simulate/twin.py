"""The digital twin of a running pipeline: simulates its measured operators to predict other allocations.

The micro-batch law alone treats every hop independently. But rows arrive in bursts, a batch's output at once: an
operator faster than its predecessor finds them all at the start of its batch, and a slightly slower one finds sometimes
one burst and sometimes two. And batch durations vary. Both change the mean by tens of percent on busy chains, so the
twin simulates the batches, with the measured variability of their overhead.

The path of a row: on Spark the measured latency is the age of source rows when the last operator publishes the result,
however many rows it has. So in the twin a row takes one path from a source to the end, any branch at a split, and
carries its share of the work: an operator that sees V rows for each row of the pipeline, while the twin sends it v, is
slower by V/v for each of them. At a loop, rows return to an operator such that the share of its rows that came through
the loop is as measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sluicegate.domain import BatchCosts, Edge, Operator, Topology
from sluicegate.lab.simulate.distributions import Distribution, gamma
from sluicegate.lab.simulate.scenario import Behaviour
from sluicegate.lab.simulate.simulation import SimulationResult, simulate
from sluicegate.model.traffic import visits
from sluicegate.model.ways import one_way

_FEED_COSTS = BatchCosts(overhead_s=1e-6, per_task_s=0.0)
_FEED_PER_S = 1e9


@dataclass(frozen=True, slots=True)
class Twin:
    """``ways`` is the pipeline with one path per row, ``feeds`` the operators that feed it rows every ``feed_s``."""

    ways: Topology
    feeds: tuple[str, ...]
    feed_s: float
    noise: Mapping[str, Distribution] = field(default_factory=dict)

    def predict(
        self,
        rate_per_s: float,
        processors: Mapping[str, int],
        seconds: float,
        seed: int,
        pace_s: Mapping[str, float] | None = None,
    ) -> SimulationResult:
        """Simulate ``processors`` at a steady rate; ``pace_s`` is the trigger interval of operators that have one."""
        allocation = {**processors, **dict.fromkeys(self.feeds, 1)}
        paces = {**(pace_s or {}), **dict.fromkeys(self.feeds, self.feed_s)}
        behaviour = Behaviour(pace_s=paces, batch_noise_of=self.noise, steady_work=True)
        return simulate(self.ways, rate_per_s, allocation, seconds, seed, mode="declared", behaviour=behaviour)


def twin_of(
    topology: Topology,
    visited: Mapping[str, float],
    noise_scv: Mapping[str, float] | None = None,
    feed_s: float = 0.0,
    returning: Mapping[str, float] | None = None,
) -> Twin:
    """The twin of a pipeline with measured operator costs; ``visited`` is an operator's rows per pipeline row.

    ``returning`` is the share of an operator's rows that came back through a loop.

    >>> cost = BatchCosts(overhead_s=0.2, per_task_s=0.0)
    >>> one = Topology("t", (Operator("a", 100.0, batch=cost),), (Edge("source", "a"), Edge("a", "sink")))
    >>> told = twin_of(one, {"a": 1.0}).predict(50.0, {"a": 1}, seconds=2000.0, seed=1)
    >>> round(told.mean_s, 1)  # 1.5 x 0.2/(1 - 0.5)
    0.6
    """
    ways, feeds = _fed(one_way(topology, returning or {}), feed_s)
    sent = dict(zip(ways.names, visits(ways).tolist(), strict=True))
    operators = tuple(
        o if o.name in feeds else replace(o, service_per_s=o.service_per_s * sent[o.name] / max(visited[o.name], 1e-9))
        for o in ways.operators
    )
    noise = {name: gamma(scv) for name, scv in (noise_scv or {}).items() if scv > 0}
    return Twin(replace(ways, operators=operators), feeds, feed_s, noise)


def _fed(topology: Topology, feed_s: float) -> tuple[Topology, tuple[str, ...]]:
    """Add an operator after each source that forwards rows every ``feed_s``, since the feeder appends in bursts."""
    if feed_s <= 0:
        return topology, ()
    feeds = {source: f"feed-{i}" for i, source in enumerate(topology.sources)}
    inner = tuple(replace(edge, origin=feeds.get(edge.origin, edge.origin)) for edge in topology.edges)
    fed = tuple(Operator(name, _FEED_PER_S, batch=_FEED_COSTS) for name in feeds.values())
    outer = tuple(Edge(source, name) for source, name in feeds.items())
    whole = replace(topology, operators=(*topology.operators, *fed), edges=(*outer, *inner))
    return whole, tuple(feeds.values())
