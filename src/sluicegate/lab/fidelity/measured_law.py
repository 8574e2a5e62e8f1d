"""Fits operator laws from the batches of a short run: costs, variability, and rows per source row."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field

from sluicegate.domain import Batch, BatchCosts, Edge, Topology, is_source
from sluicegate.model.batch_fit import BatchFits, BatchLaw
from sluicegate.model.microbatch import batch_s
from sluicegate.model.ways import MOST_RETURNING
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
