"""What a short run has told of a pipeline's operators: the law of their batches, their scatter, who sees how much."""

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
    """``topology`` carries the fitted costs; ``visited`` is rows for each row of one source; ``r2`` of each fit;
    ``returning`` the share of an operator's rows that came round a loop.

    ``noise_scv`` is of what a batch costs beside its rows: planning, launching, committing. There batches differ; the
    work of many rows added up hardly varies.
    """

    topology: Topology
    visited: Mapping[str, float]
    noise_scv: Mapping[str, float]
    r2: Mapping[str, float]
    returning: Mapping[str, float] = field(default_factory=dict)

    def busy(self, rate_per_s: float) -> dict[str, float]:
        """Processors of each operator that would be at work."""
        return {o.name: rate_per_s * self.visited[o.name] / o.service_per_s for o in self.topology.operators}

    def burst_per_s(self, rows: float, processors: Mapping[str, int]) -> float:
        """Rows of a source a second when ``rows`` of them wait: the slowest operator takes its share in one batch."""
        taken = (
            batch_s(rows * self.visited[o.name], processors[o.name], o.service_per_s, o.batch)
            for o in self.topology.operators
            if o.batch is not None
        )
        return rows / max(taken)


def measured_law(topology: Topology, records: Records, fed_rows: float) -> MeasuredLaw:
    """All warm batches weigh alike; ``fed_rows`` is what each source was fed meanwhile."""
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
    """Of the operators that a loop leads to: what they took beyond what came from before them.

    Counted in rows of the sources (births), as latency is: an operator may make many rows of one.
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
    """The commit is what of a batch comes after its rows are published."""
    commits = [r.started_s + r.duration_s - r.published_s for r in records]
    commit_s = max(statistics.median(commits), 0.0) if commits else 0.0
    return BatchCosts(law.overhead_s, law.per_task_s, commit_s)


def _expected_s(law: BatchLaw, record: BatchRecord) -> float:
    return _own_s(law, record) + record.rows / (record.processors * law.service_per_s)


def _own_s(law: BatchLaw, record: BatchRecord) -> float:
    return law.overhead_s + law.per_task_s * record.processors


def _beside_rows(law: BatchLaw, record: BatchRecord) -> float:
    """What a batch took beside its rows, as a multiple of what the law says."""
    own_s = max(_own_s(law, record), _LEAST_OWN_S)
    return 1 + (record.duration_s - _expected_s(law, record)) / own_s


def _r2(law: BatchLaw, records: list[BatchRecord]) -> float:
    if len(records) < 2:
        return 0.0
    mean = statistics.fmean(r.duration_s for r in records)
    left = sum((r.duration_s - _expected_s(law, r)) ** 2 for r in records)
    return 1 - left / max(sum((r.duration_s - mean) ** 2 for r in records), 1e-12)
