"""Builds the loop's observations of a running pipeline from batch logs and manifests: no row or query is touched.

- arrivals: rows put on an edge, as the manifests count them
- queue length: rows on an edge that no batch has taken (Little's law holds between it, arrivals and waiting)
- for a Kafka topic both come from the broker's offsets, which the driver logs; for other native Spark sources only the
  rows that batches took are known
- service: rows, k and duration of every finished batch; the micro-batch law is fitted to them
- variability: of arrivals between polls, of task time per row between batches
- sojourn: age of the births that travel with the rows, when the last operator published them
- nodes: load that the executors report, and where the plan placed the tasks
- what runs: the k that batches were cut for, executors registered and warm, nodes up; not what was requested
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sluicegate.domain import Batch, FleetSeen, Observation, OperatorObservation, Sojourn
from sluicegate.domain.births import quantile_s
from sluicegate.policy.key_groups import ranges
from sluicegate.runlog.batch_log import BatchRecord, Tail, records_of
from sluicegate.runlog.layout import Layout
from sluicegate.runlog.plan_file import PlanFile, PlanInForce
from sluicegate.spark.act.fleet import read_fleet
from sluicegate.spark.edges.backlog import LATE, Head
from sluicegate.spark.edges.folder import FolderEdge
from sluicegate.spark.edges.offsets import ends, last_batch, state_partitions
from sluicegate.spark.observe.hot_key import read_hot_key
from sluicegate.spark.observe.instances import OVERDUE_S, InForce, InstanceSpeeds
from sluicegate.spark.observe.node_loads import read_nodes
from sluicegate.spark.observe.variability import Variability
from sluicegate.spark.pipeline.graph import Node, RunningGraph

_FLAT_OUT = 0.95
"""An operator is saturated if its batches fill at least this share of the time between two polls."""
_MOSTLY_WORK = 0.75
"""And if its tasks work on rows for at least this share of its batches. Where rows wait, batches follow one another at
any load; of a small load they are nearly all overhead, and their throughput is the load, not what could be carried. At
half, a load of half the capacity would count as the most that is carried; at 0.9, only backlogs of many seconds do."""
EXECUTORS_OVERDUE_S = 90.0
"""Executors that have not started by then are reported as overdue: on two busy cores one takes 15 s."""


@dataclass(slots=True)
class Topics:
    """Lag and arrivals of the topics that an operator reads, as of the last poll."""

    tail: Tail
    known: bool = False
    behind: int = 0
    tasks: int = 0
    came: int = 0
    per_s: float | None = None
    _at_s: float | None = None
    _rows: int = 0
    _began_s: float | None = None
    _until_s: float = 0.0

    def by_batches(
        self, records: Sequence[BatchRecord], took_s: float | None, now_s: float, under_way: bool = False
    ) -> None:
        """The rate of a source that reports none: the rows of a batch came since the batch before it began.

        Until the next batch has ended the rate holds, unless that is overdue and none is ``under_way``.
        """
        if records:
            last, before_s, self._began_s = records[-1], self._began_s, records[-1].started_s
            apart_s = last.started_s - before_s if before_s is not None else max(took_s or 0.0, last.duration_s)
            self.per_s = sum(record.rows for record in records) / apart_s if took_s and apart_s > 0 else None
            self._until_s = last.started_s + last.duration_s + LATE * max(apart_s / len(records), last.duration_s)
        elif self.per_s is None or (now_s > self._until_s and not under_way):
            self.per_s = 0.0 if took_s else None

    def look(self) -> None:
        """Read new samples; the rate is between two samples, ``None`` without two of them or without a new one."""
        before_s, before = self._at_s, self._rows
        told = [json.loads(line) for line in self.tail.lines()]
        if not told and not self.known:
            return
        if told and before_s is None:
            before_s, before = float(told[0]["at_s"]), int(told[0]["rows"])
        if told:
            last = told[-1]
            self.known, self._at_s, self._rows = True, float(last["at_s"]), int(last["rows"])
            self.behind, self.tasks = int(last["behind"]), int(last["tasks"])
        self.came = max(self._rows - before, 0)
        apart_s = self._at_s - before_s if self._at_s is not None and before_s is not None else 0.0
        self.per_s = self.came / apart_s if apart_s > 0 else None


@dataclass(slots=True)
class Observer:
    """Observes a pipeline; remembers its position in every log."""

    layout: Layout
    graph: RunningGraph
    heads: dict[str, Head] = field(default_factory=dict)
    tails: dict[str, Tail] = field(default_factory=dict)
    speeds: dict[str, InstanceSpeeds] = field(default_factory=dict)
    unevenness: dict[str, Variability] = field(default_factory=dict)
    topics: dict[str, Topics] = field(default_factory=dict)
    executors: int | None = None
    in_force: dict[str, InForce] = field(default_factory=dict)
    learned: dict[str, bool] = field(default_factory=dict)
    """By operator with any measured batch: whether one of them was warm."""
    at_s: float | None = None

    @classmethod
    def of(cls, layout: Layout, graph: RunningGraph) -> Observer:
        streams = {*graph.sources, *(stream for node in graph.nodes for stream in (*node.reads, *node.writes))}
        heads = {stream: Head(FolderEdge(layout.edge(stream))) for stream in sorted(streams)}
        tails = {node.name: Tail(layout.batches(node.name)) for node in graph.nodes}
        topics = {node.name: Topics(Tail(layout.source(node.name))) for node in graph.nodes if node.source}
        return cls(layout, graph, heads, tails, topics=topics)

    @property
    def most_tasks(self) -> dict[str, int]:
        """By operator that reads Kafka: how many tasks have rows to read."""
        return {name: topics.tasks for name, topics in self.topics.items() if topics.tasks}

    def observe(self, now_s: float) -> Observation:
        """What happened since the last call; the first call gives no rates, only the backlog and logged batches."""
        fresh = {stream: head.look() for stream, head in self.heads.items()}
        records = {name: list(records_of(tail.lines())) for name, tail in self.tails.items()}
        # if the clock was set back, the time in between is unknown
        took_s, self.at_s = (now_s - self.at_s if self.at_s is not None and now_s > self.at_s else None), now_s
        plan = PlanFile(self.layout.plan).read()
        for name, topics in self.topics.items():
            topics.look()
            if not topics.known:
                topics.by_batches(records[name], took_s, now_s, name in self.in_force and self.in_force[name].under_way)
        running, pending = self._running(plan, records, now_s)
        read = [topics.per_s for topics in self.topics.values()]
        operators = {
            node.name: replace(
                self._operator(node, fresh, records[node.name], took_s),
                instance_per_s=self._speeds(node.name, records[node.name], running[node.name]),
                group_s=next((r.group_s for r in reversed(records[node.name]) if r.group_s), ()),
                hot_key=read_hot_key(self.layout.hot_key(node.name)) if node.stateful else None,
            )
            for node in self.graph.nodes
        }
        operators = {name: self._with_queues(name, seen, running[name]) for name, seen in operators.items()}
        ground = read_nodes(self.layout.nodes, now_s, running, {n: o.hosts for n, o in plan.operators.items()})
        fleet = read_fleet(self.layout.fleet_seen, now_s)
        starting, overdue = _still_to_come(fleet, pending, now_s)
        self.executors = ground.executors
        last = [record for node in self.graph.nodes if node.terminal for record in records[node.name]]
        return Observation(
            at_s=now_s,
            arrivals_per_s=_in_all([self._per_s(self.graph.sources, fresh, took_s), *read]) if took_s else None,
            running=running,
            operators=operators,
            sojourn=sojourn_of(last),
            throughput_per_s=sum(record.rows_out for record in last) / took_s if took_s else None,
            backlog_rows=sum(operator.queue_rows or 0.0 for operator in operators.values()),
            nodes=ground.nodes,
            rescaling=starting or any(age_s <= OVERDUE_S for _, _, age_s in pending),
            # k takes effect at the next batch, executors when they are warm: neither interrupts running batches
            starting=starting or any(age_s <= OVERDUE_S for _, _, age_s in pending),
            overdue=overdue,
            fleet=fleet,
            groups={node.name: self._groups(node, plan, running) for node in self.graph.nodes if node.stateful},
            unmeasured=frozenset(node.name for node in self.graph.nodes if node.name not in self.learned),
            requested={node.name: plan.of(node.name).processors for node in self.graph.nodes},
        )

    def _running(
        self, plan: PlanInForce, records: dict[str, list[BatchRecord]], now_s: float
    ) -> tuple[dict[str, int], list[tuple[str, int, float]]]:
        """The k in force of every operator, and pending changes: operator, requested k, seconds since the request."""
        running, pending = dict[str, int](), list[tuple[str, int, float]]()
        for node in self.graph.nodes:
            asked = plan.of(node.name).processors
            started = last_batch(self.layout.checkpoint(node.name))
            seen = self.in_force.setdefault(node.name, InForce())
            topics = self.topics.get(node.name)
            waiting = self.queue(node) > 0 if topics is None or topics.known else bool(topics.per_s)
            running[node.name], age_s = seen.look(asked, records[node.name], started, waiting, now_s)
            if age_s is not None:
                pending.append((node.name, asked, age_s))
        return running, pending

    def _operator(
        self, node: Node, fresh: dict[str, int], records: list[BatchRecord], took_s: float | None
    ) -> OperatorObservation:
        busy_s = sum(record.duration_s for record in records)
        rows = sum(record.rows for record in records)
        offered_s = sum(record.duration_s * record.processors for record in records)
        waited = [(r.published_s - r.entered_s) * r.rows for r in records if r.entered_s is not None]
        uneven = self.unevenness.setdefault(node.name, Variability())
        if took_s:
            uneven.take(self._came(node, rows) if node.source else sum(fresh[s] for s in node.reads), records)
        read_per_s = self.topics[node.name].per_s if node.source else None
        return OperatorObservation(
            arrivals_per_s=self._per_s(node.reads, fresh, took_s) if took_s and not node.source else read_per_s,
            service_per_s=rows / offered_s if rows and offered_s else None,
            arrival_scv=uneven.arrival_scv,
            service_scv=uneven.service_scv,
            utilisation=self._busy(node.name, busy_s, took_s) if took_s else None,
            queue_rows=float(self.queue(node)),
            saturated_per_s=rows / busy_s if self._saturated(node, records, took_s) else None,
            sojourn_s=sum(waited) / rows if waited and rows else None,
            batches=self._telling(node.name, records),
        )

    def _saturated(self, node: Node, records: list[BatchRecord], took_s: float | None) -> bool:
        """Whether the operator was the limit: batches without a pause that were mostly work, and more rows waiting."""
        busy_s = sum(record.duration_s for record in records)
        offered_s = sum(record.duration_s * record.processors for record in records)
        work_s = sum(record.work_s or 0.0 for record in records)
        if not took_s or busy_s < _FLAT_OUT * took_s or work_s < _MOSTLY_WORK * offered_s:
            return False
        return offered_s > 0 and self.queue(node) > 0

    def _busy(self, name: str, busy_s: float, took_s: float) -> float:
        """The share of the time in batches; a batch longer than the time between two polls counts before it ends."""
        return 1.0 if not busy_s and self.in_force[name].under_way else min(busy_s / took_s, 1.0)

    def _came(self, node: Node, taken: int) -> int:
        topics = self.topics[node.name]
        return topics.came if topics.known else taken

    def _per_s(self, streams: Iterable[str], fresh: dict[str, int], took_s: float) -> float:
        """Rows/s on some edges together, by manifest times; by rows per poll for edges with too few manifests."""
        now_s = self.at_s or 0.0
        return sum(self.heads[stream].rate_per_s(fresh[stream], took_s, now_s) for stream in streams)

    def _telling(self, name: str, records: list[BatchRecord]) -> tuple[Batch, ...]:
        """The batches to learn costs from: warm ones; until there is one, all but batch 0, which compiles."""
        found = []
        for record in records:
            if record.batch > 0 and not (record.cold and self.learned.get(name)):
                found.append(Batch(float(record.rows), record.processors, record.duration_s, record.work_s))
                self.learned[name] = not record.cold
        return tuple(found)

    def _speeds(self, name: str, records: list[BatchRecord], running: int) -> tuple[float, ...]:
        seen = self.speeds.setdefault(name, InstanceSpeeds())
        for record in records:
            seen.take(record)
        return seen.told(running)

    def _with_queues(self, name: str, seen: OperatorObservation, running: int) -> OperatorObservation:
        """Add the queue of each instance: its share of the backlog, and its rows left when the others had finished."""
        left = self.speeds[name].left(running)
        each = (seen.queue_rows or 0.0) / running
        return replace(seen, instance_queues=tuple(each + rows for rows in left)) if left else seen

    def _groups(self, node: Node, plan: PlanInForce, running: Mapping[str, int]) -> tuple[int, ...]:
        """The task of each key group of a stateful operator, as planned; without a plan, contiguous ranges."""
        there = state_partitions(self.layout.checkpoint(node.name)) or node.key_groups
        planned = plan.of(node.name).groups
        return planned if len(planned) == there else ranges(there, min(running[node.name], there))

    def queue(self, node: Node) -> int:
        """Rows on the edges or topics ``node`` reads that no batch of it has taken."""
        if node.name in self.topics:
            return self.topics[node.name].behind
        checkpoint = self.layout.checkpoint(node.name)
        planned = last_batch(checkpoint)
        taken = ends(checkpoint, planned) if planned is not None else {}
        return sum(self.heads[s].rows - self.heads[s].rows_before(taken.get(s, 0)) for s in node.reads)


def _still_to_come(
    fleet: FleetSeen | None, pending: Iterable[tuple[str, int, float]], now_s: float
) -> tuple[bool, tuple[str, ...]]:
    """Whether executors are still starting, and a line for each overdue request, with the reason if known."""
    late = [
        f"{name}: {asked} tasks asked for {age_s:.0f} s ago, no batch has begun with them"
        for name, asked, age_s in pending
        if age_s > OVERDUE_S
    ]
    if fleet is None or fleet.complete or fleet.requested is None:
        return False, tuple(late)
    age_s = now_s - (fleet.requested_at_s or now_s)
    if age_s <= EXECUTORS_OVERDUE_S:
        return True, tuple(late)
    why = f": {fleet.problem}" if fleet.problem else ""
    here = f"{len(fleet.executors)} are there, {len(fleet.warm)} of them warm"
    return False, (*late, f"{fleet.requested} executors asked for {age_s:.0f} s ago, {here}{why}")


def _in_all(rates: list[float | None]) -> float | None:
    known = [rate for rate in rates if rate is not None]
    return sum(known) if len(known) == len(rates) else None


def sojourn_of(records: Iterable[BatchRecord]) -> Sojourn | None:
    """Latency from birth to publication by the last operator, over all rows of the batches."""
    ages = [age for record in records for age in record.born.ages_s(record.published_s)]
    weight = sum(w for _, w in ages)
    if weight <= 0:
        return None
    mean = sum(age * w for age, w in ages) / weight
    return Sojourn(mean, quantile_s(ages, 0.5), quantile_s(ages, 0.95), quantile_s(ages, 0.99))
