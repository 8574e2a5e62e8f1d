"""The digital twin of a running pipeline: laws fitted to its batches, and a simulation by them for other allocations.

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

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sluicegate.domain import Batch, BatchCosts, Edge, Operator, Topology, is_source
from sluicegate.lab.simulate.distributions import Distribution, gamma
from sluicegate.lab.simulate.scenario import Behaviour
from sluicegate.lab.simulate.simulation import SimulationResult, simulate
from sluicegate.model.batch_fit import BatchFits, BatchLaw
from sluicegate.model.microbatch import batch_s
from sluicegate.model.traffic import MOST_RETURNING, one_way, visits
from sluicegate.runlog.batch_log import BatchRecord

Records = Mapping[str, list[BatchRecord]]
_LEAST_OWN_S = 0.01


@dataclass(frozen=True, slots=True)
class MeasuredLaw:
    """Fitted laws: ``topology`` has the costs; ``visited`` is an operator's rows per row of one source; ``r2`` is
    of each fit; ``returning`` is the share of an operator's rows that came back through a loop.

    ``noise_scv`` is the squared coefficient of variation of a batch's overhead: planning, launching, committing. That
    part varies between batches; the sum of the work of many rows hardly does.
    """

    topology: Topology
    visited: Mapping[str, float]
    noise_scv: Mapping[str, float]
    r2: Mapping[str, float]
    returning: Mapping[str, float] = field(default_factory=dict)

    def busy(self, rate_per_s: float) -> dict[str, float]:
        """Mean number of busy processors of each operator at this rate."""
        return {o.name: rate_per_s * self.visited[o.name] / o.service_per_s for o in self.topology.operators}

    def burst_per_s(self, rows: float, processors: Mapping[str, int]) -> float:
        """Rows per second and source for a burst of ``rows``: the slowest operator processes its part in one batch."""
        taken = (
            batch_s(rows * self.visited[o.name], processors[o.name], o.service_per_s, o.batch)
            for o in self.topology.operators
            if o.batch is not None
        )
        return rows / max(taken)


def measured_law(topology: Topology, records: Records, fed_rows: float) -> MeasuredLaw:
    """Fit the laws to all warm batches, equally weighted; ``fed_rows`` is the rows fed to each source meanwhile."""
    warm = {name: [r for r in found if r.rows and not r.cold] for name, found in records.items()}
    batches = {
        name: tuple(Batch(float(r.rows), r.processors, r.duration_s, r.work_s) for r in found)
        for name, found in warm.items()
    }
    laws = BatchFits.start(topology.operators, forget=1.0).learn(batches).laws()
    operators = tuple(
        o.with_figures(laws[o.name].service_per_s, 1.0, 1.0, _costs(laws[o.name], warm[o.name]))
        for o in topology.operators
    )
    beside = {o.name: [_beside_rows(laws[o.name], r) for r in warm[o.name]] for o in operators}
    return MeasuredLaw(
        topology.with_operators(operators),
        {name: sum(r.rows for r in found) / max(fed_rows, 1.0) for name, found in warm.items()},
        {name: statistics.pvariance(found) if len(found) > 1 else 0.0 for name, found in beside.items()},
        {name: _r2(laws[name], found) for name, found in warm.items()},
        _returning(topology, warm, fed_rows),
    )


def _returning(topology: Topology, records: Records, fed_rows: float) -> dict[str, float]:
    """For operators at the end of a loop edge: the share of input that did not come over the forward edges.

    Counted in source rows (births), as latency is, since an operator may emit many rows for one.
    """

    def came_from(edge: Edge) -> float:
        return fed_rows if is_source(edge.origin) else sum(r.born.weight for r in records[edge.origin])

    found = {}
    for name in {edge.target for edge in topology.edges_back}:
        before = [edge for edge in topology.edges if edge.target == name and edge not in topology.edges_back]
        taken = sum(r.born.weight for r in records[name])
        if taken > 0:
            found[name] = min(max(1 - sum(map(came_from, before)) / taken, 0.0), MOST_RETURNING)
    return found


def _costs(law: BatchLaw, records: list[BatchRecord]) -> BatchCosts:
    """Batch costs; the commit is the part of a batch after its rows are published (median)."""
    commits = [r.started_s + r.duration_s - r.published_s for r in records]
    commit_s = max(statistics.median(commits), 0.0) if commits else 0.0
    return BatchCosts(law.overhead_s, law.per_task_s, commit_s)


def _expected_s(law: BatchLaw, record: BatchRecord) -> float:
    return _own_s(law, record) + record.rows / (record.processors * law.service_per_s)


def _own_s(law: BatchLaw, record: BatchRecord) -> float:
    return law.overhead_s + law.per_task_s * record.processors


def _beside_rows(law: BatchLaw, record: BatchRecord) -> float:
    """The measured overhead of a batch as a multiple of the law's overhead."""
    own_s = max(_own_s(law, record), _LEAST_OWN_S)
    return 1 + (record.duration_s - _expected_s(law, record)) / own_s


def _r2(law: BatchLaw, records: list[BatchRecord]) -> float:
    if len(records) < 2:
        return 0.0
    mean = statistics.fmean(r.duration_s for r in records)
    left = sum((r.duration_s - _expected_s(law, r)) ** 2 for r in records)
    return 1 - left / max(sum((r.duration_s - mean) ** 2 for r in records), 1e-12)


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
        behaviour = Behaviour(pace_s=paces, batch_noise=self.noise, steady_work=True)
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
