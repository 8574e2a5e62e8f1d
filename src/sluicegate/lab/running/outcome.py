"""The outcome of a run: latency against the promise (SLO), cost against a static peak allocation, answer, decisions."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sluicegate.config.typed import goal_from
from sluicegate.control.planning import proposal_at
from sluicegate.control.settings import policy_for
from sluicegate.domain import BatchCosts, Goal, Limits, Topology
from sluicegate.domain.births import kept_share, quantile_s
from sluicegate.lab.running.app import Answer, App
from sluicegate.lab.running.bound import bound_by
from sluicegate.policy.demand import situation_at
from sluicegate.runlog.batch_log import BatchRecord, Tail, mapped_share
from sluicegate.runlog.layout import Layout
from sluicegate.spark.controller import Control
from sluicegate.spark.pipeline.graph import RunningGraph
from sluicegate.spark.pipeline.runtime import Running

Tick = dict[str, Any]
Records = Mapping[str, list[BatchRecord]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run. ``kept_share`` is the share of rows in windows in which the promise was kept; ``None`` without one.

    ``static_peak`` is the number of processors that a fixed allocation for the peak would hold all the time, by the
    laws measured in this run. ``interrupted``: the load was ended early. ``bound`` explains why the promise was missed,
    if it was.
    """

    app: str
    policy: str
    goal: Goal
    rows_in: int
    answer: Answer | None
    kept_share: float | None
    slot_seconds: float
    static_peak: int | None
    seconds: float
    mean_s: float | None
    p95_s: float | None
    decisions: tuple[dict[str, Any], ...]
    ticks: tuple[Tick, ...]
    why_grouped: tuple[str, ...]
    restarts: tuple[str, ...]
    began_s: float = 0.0
    interrupted: bool = False
    bound: str = ""
    mapped_share: float | None = None
    """Of the tasks that were mapped to a certain executor, the share that ran there."""
    peak_processors: Mapping[str, int] = field(default_factory=dict)
    """``static_peak`` by operator."""

    @property
    def rescales(self) -> int:
        return sum(bool(decision["rescales"]) for decision in self.decisions)


def outcome_of(
    app: App,
    running: Running,
    control: Control,
    fed: Mapping[str, int],
    answer: Answer | None,
    began_s: float,
    peak_per_s: float,
    ticks: list[Tick],
) -> Outcome:
    """Build the outcome from the logs of a run that began at ``began_s``."""
    goal = goal_from(list(control.slo))
    records = _all_records(running, began_s)
    last = [record for node in running.graph.nodes if node.terminal for record in records[node.name]]
    ages = [age for record in last for age in record.born.ages_s(record.published_s)]
    weight, took_s = sum(w for _, w in ages), time.time() - began_s
    kept = kept_share(published_ages(last), goal)
    decisions = decisions_in(running.layout)
    peak = peak_processors(running.graph, control, records, peak_per_s, ticks, running.most_tasks)
    return Outcome(
        app=app.name,
        policy=control.policy,
        goal=goal,
        rows_in=sum(fed.values()),
        answer=answer,
        kept_share=kept,
        slot_seconds=slot_seconds(ticks, took_s),
        static_peak=sum(peak.values()) or None,
        seconds=took_s,
        mean_s=sum(age * w for age, w in ages) / weight if weight else None,
        p95_s=quantile_s(ages, 0.95),
        decisions=tuple(decision for decision in decisions if decision["at_s"] >= began_s),
        ticks=tuple(ticks),
        why_grouped=running.why_grouped,
        restarts=tuple(running.restarts),
        began_s=began_s,
        bound=bound_by(kept, goal, ticks, running.graph, control),
        mapped_share=mapped_share(record for found in records.values() for record in found),
        peak_processors=peak,
    )


def decisions_in(layout: Layout) -> list[dict[str, Any]]:
    """All logged decisions, also those of earlier runs in the folder."""
    return [json.loads(line) for line in Tail(layout.decisions).lines()]


def _all_records(running: Running, since_s: float) -> dict[str, list[BatchRecord]]:
    """The batches of the run; waits first, since the last ones are logged shortly after their commit."""
    time.sleep(0.8)
    return {
        node.name: [record for record in running.records(node.name) if record.published_s >= since_s]
        for node in running.graph.nodes
    }


def published_ages(records: Iterable[BatchRecord]) -> Iterator[tuple[float, float, float]]:
    """(Time of publication, age, rows) of the rows of these batches."""
    for record in records:
        yield from ((record.published_s, age_s, rows) for age_s, rows in record.born.ages_s(record.published_s))


def slot_seconds(ticks: list[Tick], took_s: float) -> float:
    """The number of running processors integrated over the run.

    >>> slot_seconds([{"at_s": 10.0, "running": {"a": 2}}, {"at_s": 14.0, "running": {"a": 3}}], took_s=10.0)
    26.0
    """
    times = [float(tick["at_s"]) for tick in ticks]
    totals = [sum(tick["running"].values()) for tick in ticks]
    ends = [*times[1:], times[0] + took_s] if times else []
    return float(sum(total * max(end - at, 0.0) for total, at, end in zip(totals, times, ends, strict=True)))


def peak_processors(
    graph: RunningGraph,
    control: Control,
    records: Records,
    peak_per_s: float,
    ticks: list[Tick],
    most_tasks: Mapping[str, int],
) -> dict[str, int]:
    """The allocation of sluicegate's policy for the peak, with the costs and visits measured in this run."""
    if not ticks:
        return {}
    topology = as_told(graph.topology(), ticks[-1])
    return processors_for(peak_per_s, graph, control, topology, records, most_tasks)


def processors_for(
    rate_per_s: float,
    graph: RunningGraph,
    control: Control,
    topology: Topology,
    records: Records,
    most_tasks: Mapping[str, int] | None = None,
) -> dict[str, int]:
    """The policy's allocation for a constant load, with the costs in ``topology`` and the visits in ``records``.

    ``most_tasks`` caps operators that read topics at their number of partitions.
    """
    rows_in = sum(r.rows for n in graph.nodes if set(n.reads) & set(graph.sources) or n.source for r in records[n.name])
    if rate_per_s <= 0 or not rows_in:
        return {}
    most = {node.name: node.key_groups for node in graph.nodes if node.stateful}
    limits = Limits(budget=control.budget, most_of={**most, **(most_tasks or {})})
    situation = situation_at(topology, rate_per_s, goal_from(list(control.slo)), limits)
    arrivals = {name: rate_per_s * sum(r.rows for r in found) / rows_in for name, found in records.items()}
    policy = policy_for("sluicegate", control.timing)
    return dict(proposal_at(policy, replace(situation, operator_arrivals_per_s=arrivals)).processors)


def as_told(topology: Topology, tick: Mapping[str, Any]) -> Topology:
    """The topology with the operator figures of a controller's tick."""
    told = tick["operators"]
    operators = tuple(
        o.with_figures(told[o.name]["service_per_s"], o.arrival_scv, o.service_scv, BatchCosts(**told[o.name]["batch"]))
        for o in topology.operators
    )
    return topology.with_operators(operators)
