"""What the loop sees of one attached query, from the lines that the driver writes of its batches.

- arrivals: rows a second over the last seconds that batches tell of
- queue length: Kafka's rows behind; sources that do not say have none
- service: rows, tasks at once and duration of every finished batch; the law is fitted from them
- sojourn: the arrivals that ``latency`` works out, aged at the moment the sink had them
- running: the tasks of the last batch that could run at once
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sluicegate.domain import Batch, Observation, OperatorObservation, Sojourn
from sluicegate.runlog.batch_log import BatchRecord, Tail
from sluicegate.runlog.layout import Layout
from sluicegate.spark.attach.latency import ArrivalCurve, Stretch, behind, births
from sluicegate.spark.observe.variability import Variability
from sluicegate.spark.pipeline.observing import sojourn_of

_WINDOW_S = 10.0
_FOLLOWS_S = 60.0
"""How long what was planned may differ from what runs until it is taken for not to be had."""
_SEEN_LATER_S = 1.0
"""A batch that began so soon after a plan may have been planned before it."""


@dataclass(frozen=True, slots=True)
class Planned:
    """What the plan in force says of a query, and since when."""

    processors: int
    since_s: float


@dataclass(slots=True)
class QueryObserver:
    """Remembers where it left off in the query's log."""

    name: str
    tail: Tail
    arrivals: ArrivalCurve = field(default_factory=ArrivalCurve)
    came: deque[Stretch] = field(default_factory=lambda: deque(maxlen=400))
    uneven: Variability = field(default_factory=Variability)
    last: Mapping[str, Any] | None = None
    sojourn: Sojourn | None = None
    records: tuple[BatchRecord, ...] = ()
    learned: dict[str, bool] = field(default_factory=dict)
    most_tasks: int = 1
    at_s: float | None = None

    @classmethod
    def of(cls, layout: Layout, name: str) -> QueryObserver:
        return cls(name, Tail(layout.batches(name)))

    def observe(self, now_s: float, busy: bool, planned: Planned | None) -> Observation:
        """What happened since the last time."""
        lines = [json.loads(line) for line in self.tail.lines()]
        self.records = tuple(self._record(line) for line in lines)
        took_s, self.at_s = (now_s - self.at_s if self.at_s is not None else None), now_s
        if self.records:
            self.sojourn = sojourn_of(self.records) or self.sojourn
        rate = self._rate(now_s, busy)
        if took_s:
            self.uneven.take(sum(record.rows for record in self.records), self.records)
        running, moving = self._running(now_s, planned)
        seen = self._operator(rate, took_s, now_s, busy)
        return Observation(
            at_s=now_s,
            arrivals_per_s=rate,
            running={self.name: running} if running else {},
            operators={self.name: seen},
            sojourn=self.sojourn,
            throughput_per_s=sum(r.rows_out for r in self.records) / took_s if took_s else None,
            backlog_rows=seen.queue_rows,
            rescaling=moving,
        )

    @property
    def ages(self) -> list[tuple[float, float]]:
        """Latencies of the rows that came out since the last look, with their weights."""
        return [age for record in self.records for age in record.born.ages_s(record.published_s)]

    def _record(self, line: Mapping[str, Any]) -> BatchRecord:
        record = BatchRecord.from_json(json.dumps(line))
        stretches = self.arrivals.of(line)
        self.came.extend(stretches)
        self.last, self.most_tasks = line, max(self.most_tasks, int(line["tasks"]))
        born = births(stretches)
        return replace(record, born=born, entered_s=born.mean_s)

    def _rate(self, now_s: float, busy: bool) -> float | None:
        """Rows a second over a window that ends when the last batch looked, or now where the query is idle."""
        if self.last is None or not self.came:
            return None if self.last is None else 0.0
        looked_s = float(self.last["started_s"])
        idle = (
            not busy
            and now_s - (looked_s + float(self.last["duration_s"])) > float(self.last.get("trigger_s") or 0) + 1
        )
        until_s = now_s if idle else looked_s
        since_s = until_s - max(_WINDOW_S, 2 * float(self.last["duration_s"]))
        since_s = max(since_s, self.came[0].from_s)
        rows = sum(one.rows_after(since_s) for one in self.came)
        return rows / (until_s - since_s) if until_s > since_s else None

    def _operator(self, rate: float | None, took_s: float | None, now_s: float, busy: bool) -> OperatorObservation:
        records = self.records
        rows = sum(record.rows for record in records)
        offered_s = sum(record.duration_s * record.processors for record in records)
        return OperatorObservation(
            arrivals_per_s=rate,
            service_per_s=rows / offered_s if rows and offered_s else None,
            arrival_scv=self.uneven.arrival_scv,
            service_scv=self.uneven.service_scv,
            utilisation=self._busy_share(took_s, now_s, busy),
            queue_rows=behind(self.last) if self.last is not None else None,
            sojourn_s=self.sojourn.mean_s if self.sojourn else None,
            batches=self._telling(),
        )

    def _busy_share(self, took_s: float | None, now_s: float, busy: bool) -> float | None:
        if not took_s:
            return None
        since_s = now_s - took_s
        done_s = sum(max(min(r.started_s + r.duration_s, now_s) - max(r.started_s, since_s), 0.0) for r in self.records)
        ended_s = float(self.last["started_s"]) + float(self.last["duration_s"]) if self.last else since_s
        return min((done_s + (now_s - max(ended_s, since_s) if busy else 0.0)) / took_s, 1.0)

    def _telling(self) -> tuple[Batch, ...]:
        """The batches to learn from: warm ones; until there is one, all but the very first, which compiles."""
        found = []
        for record in self.records:
            if record.batch > 0 and record.rows > 0 and not (record.cold and self.learned.get(self.name)):
                found.append(Batch(float(record.rows), record.processors, record.duration_s, record.work_s))
                self.learned[self.name] = not record.cold
        return tuple(found)

    def _running(self, now_s: float, planned: Planned | None) -> tuple[int, bool]:
        """Tasks at once, and whether a change of them is under way."""
        seen = int(self.last["processors"]) if self.last is not None else 0
        if planned is None or self.last is None or seen == planned.processors:
            return seen, False
        under_way = now_s - planned.since_s < _FOLLOWS_S
        fresh = float(self.last["started_s"]) > planned.since_s + _SEEN_LATER_S
        return (seen if fresh else planned.processors), under_way
