"""What the loop sees of a running pipeline, from its batch logs and manifests alone: no row is touched, no query asked.

- arrivals: rows put on an edge, as the manifests count them
- queue length: rows on an edge that no batch has taken (Little's law holds between it, arrivals and waiting)
- of a Kafka topic both from the broker's offsets, which the driver logs; of other streams of Spark's own only what
  batches took is known
- service: rows, k and duration of every finished batch; the law is fitted from them
- variability: of arrivals between looks, of task time a row between batches
- sojourn: the births that travel with the rows, aged at the moment the last operator published them
- nodes: what the executors tell of themselves
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from sluicegate.domain import Batch, Observation, OperatorObservation, Sojourn
from sluicegate.domain.births import quantile_s
from sluicegate.runlog.batch_log import BatchRecord, Tail
from sluicegate.runlog.layout import Layout
from sluicegate.runlog.plan_file import PlanFile
from sluicegate.spark.edges.backlog import Head
from sluicegate.spark.edges.folder import FolderEdge
from sluicegate.spark.edges.offsets import ends, last_batch
from sluicegate.spark.observe.instances import InstanceSpeeds
from sluicegate.spark.observe.node_loads import read_nodes
from sluicegate.spark.observe.variability import Variability
from sluicegate.spark.pipeline.graph import Node, RunningGraph


@dataclass(slots=True)
class Topics:
    """What the broker told of the topics that an operator reads, as of the last look."""

    tail: Tail
    known: bool = False
    behind: int = 0
    tasks: int = 0
    came: int = 0
    per_s: float | None = None
    _at_s: float | None = None
    _rows: int = 0

    def look(self) -> None:
        """Rates are from sample to sample; without two of them, or without a new one, there is none."""
        before_s, before = self._at_s, self._rows
        told = [json.loads(line) for line in self.tail.lines()]
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
    """Remembers where it left off in every log."""

    layout: Layout
    graph: RunningGraph
    heads: dict[str, Head] = field(default_factory=dict)
    tails: dict[str, Tail] = field(default_factory=dict)
    speeds: dict[str, InstanceSpeeds] = field(default_factory=dict)
    unevenness: dict[str, Variability] = field(default_factory=dict)
    topics: dict[str, Topics] = field(default_factory=dict)
    executors: int | None = None
    learned: dict[str, bool] = field(default_factory=dict)
    """By operator that told of any batch: whether one of them was warm."""
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
        """What happened since the last time; the first time tells no rates, only what waits and what was learned."""
        fresh = {stream: head.look() for stream, head in self.heads.items()}
        records = {name: [BatchRecord.from_json(line) for line in tail.lines()] for name, tail in self.tails.items()}
        took_s, self.at_s = (now_s - self.at_s if self.at_s is not None else None), now_s
        plan = PlanFile(self.layout.plan).read()
        running = {node.name: plan.of(node.name).processors for node in self.graph.nodes}
        for topics in self.topics.values():
            topics.look()
        read = [self._read_per_s(node.name, records[node.name], took_s) for node in self.graph.nodes if node.source]
        operators = {
            node.name: replace(
                self._operator(node, fresh, records[node.name], took_s),
                instance_per_s=self._speeds(node.name, records[node.name], running[node.name]),
            )
            for node in self.graph.nodes
        }
        ground = read_nodes(self.layout.nodes, now_s, running)
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
        )

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
        read_per_s = self._read_per_s(node.name, records, took_s) if node.source else None
        return OperatorObservation(
            arrivals_per_s=self._per_s(node.reads, fresh, took_s) if took_s and not node.source else read_per_s,
            service_per_s=rows / offered_s if rows and offered_s else None,
            arrival_scv=uneven.arrival_scv,
            service_scv=uneven.service_scv,
            utilisation=min(busy_s / took_s, 1.0) if took_s else None,
            queue_rows=float(self.queue(node)),
            sojourn_s=sum(waited) / rows if waited and rows else None,
            batches=self._telling(node.name, records),
        )

    def _read_per_s(self, name: str, records: list[BatchRecord], took_s: float | None) -> float | None:
        """Rows a second from a stream of Spark's own; ``None`` while the broker of a topic does not answer."""
        topics = self.topics[name]
        if topics.known or not took_s:
            return topics.per_s
        return sum(record.rows for record in records) / took_s

    def _came(self, node: Node, taken: int) -> int:
        topics = self.topics[node.name]
        return topics.came if topics.known else taken

    def _per_s(self, streams: Iterable[str], fresh: dict[str, int], took_s: float) -> float:
        """Rows a second on some edges together; an edge of which too little is known is judged by the looks."""
        rates = ((self.heads[stream].per_s, fresh[stream] / took_s) for stream in streams)
        return sum(by_looks if measured is None else measured for measured, by_looks in rates)

    def _telling(self, name: str, records: list[BatchRecord]) -> tuple[Batch, ...]:
        """The batches to learn from: warm ones; until there is one, all but the very first, which compiles."""
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

    def queue(self, node: Node) -> int:
        """Rows on the edges or topics ``node`` reads that no batch of it has taken."""
        if node.name in self.topics:
            return self.topics[node.name].behind
        checkpoint = self.layout.checkpoint(node.name)
        planned = last_batch(checkpoint)
        taken = ends(checkpoint, planned) if planned is not None else {}
        return sum(self.heads[s].rows - self.heads[s].rows_before(taken.get(s, 0)) for s in node.reads)


def _in_all(rates: list[float | None]) -> float | None:
    known = [rate for rate in rates if rate is not None]
    return sum(known) if len(known) == len(rates) else None


def sojourn_of(records: Iterable[BatchRecord]) -> Sojourn | None:
    """From birth to the end of the pipeline, over all rows that the batches finished."""
    ages = [age for record in records for age in record.born.ages_s(record.published_s)]
    weight = sum(w for _, w in ages)
    if weight <= 0:
        return None
    mean = sum(age * w for age, w in ages) / weight
    return Sojourn(mean, quantile_s(ages, 0.5), quantile_s(ages, 0.95), quantile_s(ages, 0.99))
