"""Builds the observation of one attached query from the batch lines that the driver logs.

- arrivals: rows per second over the last seconds: for Kafka the growth of the topics, for files the new files (both
  whether read or not), for other sources the rows that batches read
- queue length: Kafka's lag, from the broker or the last progress report; waiting files times the rows in earlier files;
  unknown for sources that report neither
- service: rows, concurrent tasks and duration of every finished batch, from which the batch cost law is fitted
- sojourn: from the arrival times that ``latency`` estimates to the moment the sink had the rows
- running: the tasks of the last batch that could run at once
"""

from __future__ import annotations

import contextlib
import json
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sluicegate.domain import Batch, Observation, OperatorObservation, Sojourn
from sluicegate.model.state_stores import StoresSeen
from sluicegate.model.state_stores import advice as stores_advice
from sluicegate.runlog.batch_log import DAMAGE, BatchRecord, Tail
from sluicegate.runlog.layout import Layout
from sluicegate.spark.attach.files import FilesSeen, RowsInFiles
from sluicegate.spark.attach.latency import ArrivalCurve, Stretch, behind, births
from sluicegate.spark.attach.stages import StagesSeen
from sluicegate.spark.attach.topics import TopicsSeen
from sluicegate.spark.observe.variability import Variability
from sluicegate.spark.pipeline.observing import sojourn_of

_WINDOW_S = 10.0
_LISTED_S = 5.0
"""Rate window for sources whose arrivals are known before a batch reads them. At half, single files move processors; at
double, a load step is seen five seconds later."""
_LONGEST_WINDOW_S = 120.0
_FEW_FILES = 6
"""With fewer files in the window it is made longer: a rate from one file in ten seconds is too noisy."""
_FOLLOWS_S = 60.0
"""How long the tasks that run may differ from the plan before the plan counts as not followed."""
_TELLING_BATCHES = 5
"""Warm batches needed before the commit times of state stores are used."""
_RECENT_S = 60.0
"""An idle query's latency counts for this long after its last rows: later it says nothing of the promise."""
_SEEN_LATER_S = 1.0
"""A batch that began within this time after a plan was written may have been planned before it."""


@dataclass(frozen=True, slots=True)
class Planned:
    """The processors that the plan in force gives a query, and since when."""

    processors: int
    since_s: float


@dataclass(slots=True)
class QueryObserver:
    """Observes one query; keeps its position in the query's log between calls."""

    name: str
    tail: Tail
    topics: TopicsSeen
    arrivals: ArrivalCurve
    came: deque[Stretch] = field(default_factory=lambda: deque(maxlen=400))
    read: deque[Stretch] = field(default_factory=lambda: deque(maxlen=400))
    """Rows that batches read from files, for folders that are not listed."""
    uneven: Variability = field(default_factory=Variability)
    last: Mapping[str, Any] | None = None
    sojourn: Sojourn | None = None
    sojourn_s: float | None = None
    """When ``sojourn`` was measured."""
    records: tuple[BatchRecord, ...] = ()
    fresh: tuple[BatchRecord, ...] = ()
    """Those of ``records`` whose rows came out lately: after a restart the first ones are those of hours."""
    learned: dict[str, bool] = field(default_factory=dict)
    most_tasks: int = 1
    source_tasks: int = 1
    stages: StagesSeen = field(default_factory=StagesSeen)
    in_files: RowsInFiles = field(default_factory=RowsInFiles)
    commits: deque[StoresSeen] = field(default_factory=lambda: deque(maxlen=20))
    at_s: float | None = None

    @classmethod
    def of(cls, layout: Layout, name: str) -> QueryObserver:
        topics = TopicsSeen(Tail(layout.source(name)))
        return cls(name, Tail(layout.batches(name)), topics, ArrivalCurve(topics.curve))

    def observe(self, now_s: float, busy: bool, planned: Planned | None, files: FilesSeen | None = None) -> Observation:
        """Observe what happened since the last call. ``files`` is the driver's listing, if the query reads files."""
        self.topics.look()
        self.arrivals.reports = self.topics.at_s is None
        self.records = tuple(self._whole())
        self.fresh = tuple(record for record in self.records if now_s - record.published_s <= _RECENT_S)
        # if the clock was set back, the elapsed time is unknown
        took_s, self.at_s = (now_s - self.at_s if self.at_s is not None and now_s > self.at_s else None), now_s
        if latest := sojourn_of(self.fresh):
            self.sojourn, self.sojourn_s = latest, now_s
        rate = self._arrivals_per_s(now_s, busy, files)
        if took_s:
            self.uneven.take(sum(record.rows for record in self.records), self.records)
        running, moving = self._running(now_s, planned)
        waiting = self._waiting(now_s, files)
        if not busy and not waiting and self._long_ago(now_s):
            self.sojourn = None
        seen = replace(self._operator(rate, took_s, now_s, busy), queue_rows=self._late(waiting, rate))
        return Observation(
            at_s=now_s,
            arrivals_per_s=rate,
            running={self.name: running} if running else {},
            operators={self.name: seen},
            sojourn=self.sojourn,
            throughput_per_s=sum(r.rows_out for r in self.records) / took_s if took_s else None,
            backlog_rows=waiting,
            rescaling=moving,
            starting=moving,
            requested={self.name: planned.processors} if moving and planned is not None else {},
        )

    def _long_ago(self, now_s: float) -> bool:
        """Whether the last rows came out so long ago that a query with rows would have had a batch since."""
        every_s = float((self.last or {}).get("trigger_s") or 0.0)
        return self.sojourn_s is not None and now_s - self.sojourn_s > max(_RECENT_S, 2 * every_s)

    @property
    def all_kafka(self) -> bool:
        """Whether all its sources are Kafka topics, so that the broker knows all arrivals."""
        return self.last is not None and all(source["kafka"] for source in self.last["sources"])

    @property
    def batch_s(self) -> float:
        """How long the last batch took."""
        return float(self.last["duration_s"]) if self.last is not None else 0.0

    @property
    def helpful_tasks(self) -> int | None:
        """How many tasks have rows to read, if all stages read topics; ``None`` if there is no such bound."""
        stages = (self.last or {}).get("stages") or []
        if not self.all_kafka or any(stage["behind_shuffle"] for stage in stages):
            return None
        return self.topics.helpful_tasks(self.batch_s)

    def _behind(self, now_s: float) -> float | None:
        """Kafka's lag in rows; unknown while a polled broker does not answer, since the last value would be stale."""
        if self.topics.at_s is not None:
            told = self.topics.behind(now_s)
            return None if told is None else float(told)
        return behind(self.last) if self.last is not None else None

    def _arrivals_per_s(self, now_s: float, busy: bool, files: FilesSeen | None) -> float | None:
        if self.all_kafka and self.topics.at_s is not None:
            told = self.topics.per_s(now_s)
            if told is not None or not self.topics.answers(now_s):
                return told
        return self._rate(now_s, busy, files)

    @property
    def ages(self) -> list[tuple[float, float]]:
        """Latencies of the rows that came out since the last observation, with their weights."""
        return [age for record in self.fresh for age in record.born.ages_s(record.published_s)]

    def _whole(self) -> Iterator[BatchRecord]:
        """The batches logged since the last call; damaged lines are skipped."""
        for line in self.tail.lines():
            with contextlib.suppress(*DAMAGE):
                yield self._record(json.loads(line))

    def _record(self, line: Mapping[str, Any]) -> BatchRecord:
        record = BatchRecord.from_json(json.dumps(line))
        since_s = self.arrivals.since_s(line)
        stretches = self.arrivals.of(line)
        if rows := sum(int(source["rows"]) for source in line["sources"] if source.get("files")):
            self.read.append(Stretch(since_s, float(line["started_s"]), rows))
        self.came.extend(one for one in stretches if not one.sampled)
        self.in_files.learn(line["sources"])
        line = self._with_tasks(line)
        self.last, self.most_tasks = line, max(self.most_tasks, int(line["tasks"]))
        self._learn_stores(line)
        born = births(stretches)
        return replace(record, born=born, entered_s=born.mean_s, processors=int(line["processors"]))

    def _with_tasks(self, line: Mapping[str, Any]) -> Mapping[str, Any]:
        """The line with the tasks that carry the work, where the driver has those of the widest stage."""
        found = self.stages.tasks_of(line)
        if found is None:
            return line
        if not self.learned:  # how many tasks read the sources before the first plan
            self.source_tasks = max(self.source_tasks, self.stages.reading)
        at_once = max(min(found, int(line["slots"])), 1)
        return line if found == int(line["tasks"]) else {**line, "tasks": found, "processors": at_once}

    def _learn_stores(self, line: Mapping[str, Any]) -> None:
        if not line.get("cold") and line.get("state_partitions"):
            partitions, rows = int(line["state_partitions"]), int(line["state_rows"])
            took_s, at_once = float(line["duration_s"]), int(line["processors"])
            self.commits.append(StoresSeen(partitions, rows, float(line["state_commit_s"]), took_s, at_once))

    def stores_advice(self, most_tasks: int, checkpoint: str) -> str | None:
        """Advice to use fewer state partitions, from the batch with the median commit time; ``None`` without any."""
        if len(self.commits) < _TELLING_BATCHES:
            return None
        usual = sorted(self.commits, key=lambda seen: seen.commit_s)[len(self.commits) // 2]
        return stores_advice(usual, most_tasks, checkpoint, bool((self.last or {}).get("rocksdb", True)))

    def _rate(self, now_s: float, busy: bool, files: FilesSeen | None) -> float | None:
        """Rows per second over a window that ends at the start of the last batch, or now if the query is idle."""
        if self.last is None:
            return None
        looked_s = float(self.last["started_s"])
        idle = (
            not busy
            and now_s - (looked_s + float(self.last["duration_s"])) > float(self.last.get("trigger_s") or 0) + 1
        )
        until_s = now_s if idle else looked_s
        window_s = max(_WINDOW_S, 2 * float(self.last["duration_s"]))
        listed = self._listed(files)
        since_s = until_s - window_s
        if self.arrivals.first_s is not None:
            since_s = max(since_s, self.arrivals.first_s)
        came = [*self.came, *(self.read if files is None else ())]
        if came:
            since_s = max(since_s, min(one.from_s for one in came))
        if until_s <= since_s:
            return listed
        rows = float(sum(one.rows_after(since_s) for one in came))
        return rows / (until_s - since_s) + self.arrivals.curve.per_s(since_s, until_s) + (listed or 0.0)

    def _listed(self, files: FilesSeen | None) -> float | None:
        """Rows per second in new files, whether read or not."""
        if files is None:
            return None
        window_s = _LISTED_S
        while files.came_within(window_s)[0] < _FEW_FILES and window_s < _LONGEST_WINDOW_S:
            window_s *= 2
        return self.in_files.of(*files.per_s(min(window_s, _LONGEST_WINDOW_S)))

    def _waiting(self, now_s: float, files: FilesSeen | None) -> float | None:
        behind_rows = self._behind(now_s)
        waiting = self.in_files.of(files.waiting, files.waiting_bytes) if files is not None else None
        return behind_rows if waiting is None else (behind_rows or 0.0) + waiting

    def _late(self, waiting: float | None, rate: float | None) -> float | None:
        """Waiting rows beyond those that the user's trigger interval lets wait: these are no backlog to drain."""
        every_s = float((self.last or {}).get("trigger_s") or 0.0)
        return waiting if waiting is None or not every_s else max(waiting - (rate or 0.0) * every_s, 0.0)

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
        """The batches to learn from: warm ones; until there is one, all but the very first, which compiles code."""
        found = []
        for record in self.records:
            if record.batch > 0 and record.rows > 0 and not (record.cold and self.learned.get(self.name)):
                found.append(Batch(float(record.rows), record.processors, record.duration_s, record.work_s))
                self.learned[self.name] = not record.cold
        return tuple(found)

    def _running(self, now_s: float, planned: Planned | None) -> tuple[int, bool]:
        """Concurrent tasks, and whether a rescale is in progress (waiting for the next batch or for executors)."""
        seen = int(self.last["processors"]) if self.last is not None else 0
        if planned is None or self.last is None or seen == planned.processors:
            return seen, False
        if now_s - planned.since_s < _FOLLOWS_S:
            return seen, True
        fresh = float(self.last["started_s"]) > planned.since_s + _SEEN_LATER_S
        # an idle query runs no batch that could show the plan in force
        return (seen if fresh else planned.processors), False
