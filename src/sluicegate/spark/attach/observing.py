"""What the loop sees of one attached query, from the lines that the driver writes of its batches.

- arrivals: rows a second over the last seconds: of Kafka by what the topics grew, of files by those that came (both
  whether read or not), of other sources by what batches took
- queue length: Kafka's rows behind, by the broker or the last progress report; files waiting with as many rows as those
  before; sources that do not say have none
- service: rows, tasks at once and duration of every finished batch; the law is fitted from them
- sojourn: the arrivals that ``latency`` works out, aged at the moment the sink had them
- running: the tasks of the last batch that could run at once
"""

from __future__ import annotations

import contextlib
import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sluicegate.domain import Batch, Observation, OperatorObservation, Sojourn
from sluicegate.model.state_stores import StoresSeen
from sluicegate.model.state_stores import advice as stores_advice
from sluicegate.runlog.batch_log import DAMAGE, BatchRecord, Tail
from sluicegate.runlog.layout import Layout
from sluicegate.spark.attach.files import FilesSeen, RowsInFiles
from sluicegate.spark.attach.latency import ArrivalCurve, Stretch, behind, births
from sluicegate.spark.attach.topics import TopicsSeen
from sluicegate.spark.observe.variability import Variability
from sluicegate.spark.pipeline.observing import sojourn_of

_WINDOW_S = 10.0
_LISTED_S = 5.0
"""The window where what comes is known whether a batch has taken it or not. At half, single files move processors; at
double, a jump is seen five seconds later."""
_LONGEST_WINDOW_S = 120.0
_FEW_FILES = 6
"""Where fewer came within the window it is made longer: a rate of one file in ten seconds says little."""
_FOLLOWS_S = 60.0
"""How long what was planned may differ from what runs until it is taken for not to be had."""
_TELLING_BATCHES = 5
"""So many warm batches say what commits of state stores take."""
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
    topics: TopicsSeen
    arrivals: ArrivalCurve
    came: deque[Stretch] = field(default_factory=lambda: deque(maxlen=400))
    uneven: Variability = field(default_factory=Variability)
    last: Mapping[str, Any] | None = None
    sojourn: Sojourn | None = None
    records: tuple[BatchRecord, ...] = ()
    learned: dict[str, bool] = field(default_factory=dict)
    most_tasks: int = 1
    source_tasks: int = 1
    scan_only: bool = False
    scan_share: float = 0.0
    in_files: RowsInFiles = field(default_factory=RowsInFiles)
    commits: deque[StoresSeen] = field(default_factory=lambda: deque(maxlen=20))
    at_s: float | None = None

    @classmethod
    def of(cls, layout: Layout, name: str) -> QueryObserver:
        topics = TopicsSeen(Tail(layout.source(name)))
        return cls(name, Tail(layout.batches(name)), topics, ArrivalCurve(topics.curve))

    def observe(self, now_s: float, busy: bool, planned: Planned | None, files: FilesSeen | None = None) -> Observation:
        """What happened since the last time. ``files`` as the driver listed them, for a query that reads files."""
        self.topics.look()
        self.arrivals.reports = self.topics.at_s is None
        self.records = tuple(self._whole())
        # a clock that was set back tells nothing of the time between
        took_s, self.at_s = (now_s - self.at_s if self.at_s is not None and now_s > self.at_s else None), now_s
        if self.records:
            self.sojourn = sojourn_of(self.records) or self.sojourn
        rate = self._arrivals_per_s(now_s, busy, files)
        if took_s:
            self.uneven.take(sum(record.rows for record in self.records), self.records)
        running, moving = self._running(now_s, planned)
        seen = replace(self._operator(rate, took_s, now_s, busy), queue_rows=self._waiting(now_s, files))
        return Observation(
            at_s=now_s,
            arrivals_per_s=rate,
            running={self.name: running} if running else {},
            operators={self.name: seen},
            sojourn=self.sojourn,
            throughput_per_s=sum(r.rows_out for r in self.records) / took_s if took_s else None,
            backlog_rows=seen.queue_rows,
            rescaling=moving,
            starting=moving,
            requested={self.name: planned.processors} if moving and planned is not None else {},
        )

    @property
    def all_kafka(self) -> bool:
        """Whether all its rows come from topics, so that the broker knows all that arrives."""
        return self.last is not None and all(source["kafka"] for source in self.last["sources"])

    @property
    def batch_s(self) -> float:
        """How long the last batch took."""
        return float(self.last["duration_s"]) if self.last is not None else 0.0

    @property
    def helpful_tasks(self) -> int | None:
        """How many tasks have rows to read, of a query whose widest stage reads topics; ``None`` where none bounds."""
        stages = (self.last or {}).get("stages") or []
        if not self.all_kafka or any(stage["behind_shuffle"] for stage in stages):
            return None
        return self.topics.helpful_tasks(self.batch_s)

    def _behind(self, now_s: float) -> float | None:
        """While a broker that was asked does not answer nothing is known: an old figure would pass for the present."""
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
        """Latencies of the rows that came out since the last look, with their weights."""
        return [age for record in self.records for age in record.born.ages_s(record.published_s)]

    def _whole(self) -> Iterator[BatchRecord]:
        """The batches that were logged since; a line that is damaged costs that batch alone."""
        for line in self.tail.lines():
            with contextlib.suppress(*DAMAGE):
                yield self._record(json.loads(line))

    def _record(self, line: Mapping[str, Any]) -> BatchRecord:
        record = BatchRecord.from_json(json.dumps(line))
        stretches = self.arrivals.of(line)
        self.came.extend(one for one in stretches if not one.sampled)
        self.in_files.learn(line["sources"])
        self.last, self.most_tasks = line, max(self.most_tasks, int(line["tasks"]))
        self._learn_stages(line.get("stages") or ())
        self._learn_stores(line)
        born = births(stretches)
        return replace(record, born=born, entered_s=born.mean_s)

    def _learn_stores(self, line: Mapping[str, Any]) -> None:
        if not line.get("cold") and line.get("state_partitions"):
            partitions, rows = int(line["state_partitions"]), int(line["state_rows"])
            took_s, at_once = float(line["duration_s"]), int(line["processors"])
            self.commits.append(StoresSeen(partitions, rows, float(line["state_commit_s"]), took_s, at_once))

    def stores_advice(self, most_tasks: int, checkpoint: str) -> str | None:
        """Whether fewer state partitions would do, by the batch with the median commit; ``None`` if not, or not yet."""
        if len(self.commits) < _TELLING_BATCHES:
            return None
        usual = sorted(self.commits, key=lambda seen: seen.commit_s)[len(self.commits) // 2]
        return stores_advice(usual, most_tasks, checkpoint, bool((self.last or {}).get("rocksdb", True)))

    def _learn_stages(self, stages: Sequence[Mapping[str, Any]]) -> None:
        """What of the work is reading sources, and in how many tasks they are read before anything was planned."""
        reading = [stage for stage in stages if not stage["behind_shuffle"]]
        if not reading:
            return
        work_s = sum(float(stage["run_s"]) for stage in stages)
        self.scan_only = len(reading) == len(stages)
        self.scan_share = sum(float(stage["run_s"]) for stage in reading) / work_s if work_s > 0 else 0.0
        if not self.learned:
            self.source_tasks = max(self.source_tasks, *(int(stage["tasks"]) for stage in reading))

    def _rate(self, now_s: float, busy: bool, files: FilesSeen | None) -> float | None:
        """Rows a second over a window that ends when the last batch looked, or now where the query is idle."""
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
        if self.came:
            since_s = max(since_s, self.came[0].from_s)
        if until_s <= since_s:
            return listed
        rows = sum(one.rows_after(since_s) for one in self.came)
        return rows / (until_s - since_s) + self.arrivals.curve.per_s(since_s, until_s) + (listed or 0.0)

    def _listed(self, files: FilesSeen | None) -> float | None:
        """Rows a second in files that came, read or not."""
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
        """The batches to learn from: warm ones; until there is one, all but the very first, which compiles."""
        found = []
        for record in self.records:
            if record.batch > 0 and record.rows > 0 and not (record.cold and self.learned.get(self.name)):
                found.append(Batch(float(record.rows), record.processors, record.duration_s, record.work_s))
                self.learned[self.name] = not record.cold
        return tuple(found)

    def _running(self, now_s: float, planned: Planned | None) -> tuple[int, bool]:
        """Tasks at once, and whether a change of them is under way: the next batch or executors are awaited."""
        seen = int(self.last["processors"]) if self.last is not None else 0
        if planned is None or self.last is None or seen == planned.processors:
            return seen, False
        if now_s - planned.since_s < _FOLLOWS_S:
            return seen, True
        fresh = float(self.last["started_s"]) > planned.since_s + _SEEN_LATER_S
        # a query without rows has no batch to show what was planned
        return (seen if fresh else planned.processors), False
