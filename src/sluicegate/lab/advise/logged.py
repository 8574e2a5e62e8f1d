"""Builds a logged application from an event log: its queries, their batches, and the slots it held."""

from __future__ import annotations

import json
import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sluicegate.domain.births import Births
from sluicegate.errors import BadInput
from sluicegate.lab.advise.event_log import Event, name_of

_MOST_ROWS = 10**15
_PARTS = 8
"""Points by which the births of one batch's rows are represented."""


@dataclass(frozen=True, slots=True)
class LoggedBatch:
    """One batch. ``tasks`` is the maximum over its stages, ``slots`` the slots of the application at that time.

    ``work_s`` is the sum of the run times of its tasks. Times are seconds since the epoch.
    """

    number: int
    admitted_s: float
    duration_s: float
    rows: int
    tasks: int
    slots: int
    work_s: float | None
    born: Births
    state_rows: int = 0
    state_partitions: int = 0
    state_commit_s: float = 0.0
    rocksdb: bool = True

    @property
    def ended_s(self) -> float:
        return self.admitted_s + self.duration_s

    @property
    def processors(self) -> int:
        """How many tasks could run in parallel."""
        return max(min(self.tasks, self.slots), 1)


@dataclass(frozen=True, slots=True)
class LoggedQuery:
    """A query over its whole time in the log; ``assumed`` says how the births of its rows were derived."""

    name: str
    batches: tuple[LoggedBatch, ...]
    assumed: str

    @property
    def work_s(self) -> float:
        return sum(batch.work_s or 0.0 for batch in self.batches)


@dataclass(frozen=True, slots=True)
class LoggedApplication:
    """A logged application; ``cores`` are pairs of (time, slots from then on)."""

    name: str
    began_s: float
    ended_s: float
    cores: tuple[tuple[float, int], ...]
    queries: tuple[LoggedQuery, ...]

    @property
    def slot_seconds(self) -> float:
        ends = [*(at for at, _ in self.cores[1:]), self.ended_s]
        return sum(slots * max(end - at, 0.0) for (at, slots), end in zip(self.cores, ends, strict=True))


@dataclass(slots=True)
class _Stages:
    tasks: int = 0
    run_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class _Progress:
    """The needed fields of one progress event, kept small since a log may hold a hundred thousand."""

    batch: int
    began_s: float
    waited_s: float
    took_s: float
    rows: int
    ran: bool
    head: float | None
    end: float | None
    state_rows: int
    state_partitions: int
    state_commit_s: float
    rocksdb: bool
    idle_s: float | None
    """When it was last seen before this that there were no rows to take."""

    @classmethod
    def of(cls, told: Mapping[str, Any], idle_s: float | None) -> _Progress:
        spent, state = told["durationMs"], told.get("stateOperators") or ()
        rows = sum(int(source.get("numInputRows", 0)) for source in told.get("sources", ()))
        if not 0 <= rows <= _MOST_ROWS:
            raise ValueError(f"{rows:.3g} rows" if abs(rows) < 1e300 else "too many rows")
        return cls(
            batch=int(told["batchId"]),
            began_s=_time_s(told),
            waited_s=float(spent.get("latestOffset", 0)) / 1e3,
            took_s=float(spent.get("triggerExecution", 0)) / 1e3,
            rows=rows,
            ran="addBatch" in spent,
            head=_offsets(told, "latestOffset"),
            end=_offsets(told, "endOffset"),
            state_rows=sum(int(one.get("numRowsTotal", 0)) for one in state),
            state_partitions=max((int(one.get("numShufflePartitions", 0)) for one in state), default=0),
            state_commit_s=sum(float(one.get("commitTimeMs", 0)) for one in state) / 1e3,
            rocksdb=all(_on_rocksdb(one.get("customMetrics") or {}) for one in state),
            idle_s=idle_s,
        )

    @property
    def admitted_s(self) -> float:
        return self.began_s + self.waited_s


@dataclass(slots=True)
class _Query:
    name: str
    progress: list[_Progress] = field(default_factory=list)
    idle_s: float | None = None


class Reader:
    """Consumes events one by one; ``application`` returns the result."""

    def __init__(self) -> None:
        self._app, self._ended_s = "application", 0.0
        self._began_s: float | None = None
        self._fleet: list[tuple[float, str, int]] = []
        self._task_cpus = 1
        self._cores: list[tuple[float, int]] = []
        self._stage_of: dict[int, tuple[str, int]] = {}
        self._stages: dict[tuple[str, int], _Stages] = {}
        self._queries: dict[str, _Query] = {}

    def take(self, event: Event) -> None:
        handlers: dict[str, Callable[[Event], None]] = {
            "SparkListenerApplicationStart": self._application,
            "SparkListenerApplicationEnd": self._end,
            "SparkListenerEnvironmentUpdate": self._environment,
            "SparkListenerExecutorAdded": self._added,
            "SparkListenerExecutorRemoved": self._removed,
            "SparkListenerJobStart": self._job,
            "SparkListenerStageCompleted": self._stage,
            "QueryStartedEvent": self._started,
            "QueryProgressEvent": self._progress,
            "QueryIdleEvent": self._idle,
        }
        handler = handlers.get(name_of(event))
        if handler is None:
            return
        try:
            handler(event)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as problem:
            what = f"it has no {problem}" if isinstance(problem, KeyError) else str(problem)[:60]
            raise BadInput(
                f"a {name_of(event)} of the event log is damaged ({what}): is it a log of Spark 3 or 4, and whole?"
            ) from None

    def application(self) -> LoggedApplication:
        """The application read so far; an error if it ran no batch of a streaming query."""
        self._cores = self._slots()
        queries = tuple(self._query(id_, found) for id_, found in self._queries.items() if found.progress)
        queries = tuple(query for query in queries if query.batches)
        if not queries:
            raise BadInput(f"application {self._app!r} ran no batch of a streaming query: nothing to advise")
        began_s = min(self._began_s or queries[0].batches[0].admitted_s, *(q.batches[0].admitted_s for q in queries))
        ended_s = max(self._ended_s, *(query.batches[-1].ended_s for query in queries))
        cores = tuple(self._cores) or ((began_s, max(b.tasks for q in queries for b in q.batches)),)
        return LoggedApplication(self._app, began_s, ended_s, cores, queries)

    def _application(self, event: Event) -> None:
        self._app, self._began_s = str(event.get("App Name", self._app)), float(event.get("Timestamp", 0)) / 1e3

    def _end(self, event: Event) -> None:
        self._ended_s = float(event.get("Timestamp", 0)) / 1e3

    def _added(self, event: Event) -> None:
        self._note(event, int(event.get("Executor Info", {}).get("Total Cores", 1)))

    def _removed(self, event: Event) -> None:
        self._note(event, 0)

    def _note(self, event: Event, cores: int) -> None:
        self._fleet.append((float(event.get("Timestamp", 0)) / 1e3, str(event.get("Executor ID")), cores))

    def _environment(self, event: Event) -> None:
        self._task_cpus = max(int(event.get("Spark Properties", {}).get("spark.task.cpus", 1)), 1)

    def _slots(self) -> list[tuple[float, int]]:
        """Slots of all executors over time; those of an executor are as many as tasks fit its cores."""
        there: dict[str, int] = {}
        found = []
        for at_s, executor, cores in self._fleet:
            there[executor] = cores // self._task_cpus
            found.append((at_s, sum(there.values())))
        return found

    def _job(self, event: Event) -> None:
        told = event.get("Properties") or {}
        query, batch = told.get("sql.streaming.queryId"), told.get("streaming.sql.batchId")
        if query is not None and batch is not None:
            self._stage_of.update(dict.fromkeys(event.get("Stage IDs", ()), (str(query), int(batch))))

    def _stage(self, event: Event) -> None:
        info = event.get("Stage Info", {})
        key = self._stage_of.pop(int(info.get("Stage ID", -1)), None)
        if key is None:
            return
        sums = self._stages.setdefault(key, _Stages())
        sums.tasks = max(sums.tasks, int(info.get("Number of Tasks", 0)))
        sums.run_ms += sum(
            float(one.get("Value", 0))
            for one in info.get("Accumulables", ())
            if one.get("Name") == "internal.metrics.executorRunTime"
        )

    def _started(self, event: Event) -> None:
        id_ = str(event["id"])
        self._queries.setdefault(id_, _Query(str(event.get("name") or f"query {id_[:8]}")))

    def _progress(self, event: Event) -> None:
        told = event["progress"]
        id_ = str(told["id"])
        query = self._queries.setdefault(id_, _Query(str(told.get("name") or f"query {id_[:8]}")))
        query.progress.append(_Progress.of(told, query.idle_s))
        query.idle_s = None

    def _idle(self, event: Event) -> None:
        if (query := self._queries.get(str(event["id"]))) is not None:
            query.idle_s = _time_s(event)

    def _query(self, id_: str, query: _Query) -> LoggedQuery:
        heads = _heads(query.progress)
        by_offsets = len(query.progress) > 1 and all(one.head is not None for one in query.progress)
        found: list[LoggedBatch] = []
        before_s, before_offset = None, None
        for one in query.progress:
            if one.rows and one.ran:
                known_s = [at_s for at_s in (before_s, one.idle_s) if at_s is not None]
                born = _between(max(known_s, default=one.admitted_s), one.admitted_s, one.rows)
                if by_offsets and before_offset is not None and one.end is not None:
                    born = _by_curve(heads, before_offset, one.end, one.rows)
                found.append(self._batch(id_, one, born))
            before_s, before_offset = one.admitted_s, one.end if one.end is not None else before_offset
        # drop the first batch: it is unknown how long its rows had waited
        return LoggedQuery(query.name, tuple(found[1:] if len(found) > 1 else found), _assumed(by_offsets))

    def _batch(self, id_: str, one: _Progress, born: Births) -> LoggedBatch:
        sums = self._stages.pop((id_, one.batch), None)
        known = bisect_right(self._cores, (one.admitted_s, math.inf))
        tasks = max(sums.tasks if sums else 1, 1)
        return LoggedBatch(
            number=one.batch,
            admitted_s=one.admitted_s,
            duration_s=max(one.took_s - one.waited_s, 1e-3),
            rows=one.rows,
            tasks=tasks,
            slots=(self._cores[known - 1][1] if known else 0) or tasks,
            work_s=sums.run_ms / 1e3 if sums and sums.run_ms else None,
            born=born,
            state_rows=one.state_rows,
            state_partitions=one.state_partitions,
            state_commit_s=one.state_commit_s,
            rocksdb=one.rocksdb,
        )


def _on_rocksdb(metrics: Mapping[str, Any]) -> bool:
    """Whether a state store is RocksDB, by the names of its metrics; assumed if it has none."""
    return not metrics or any(str(key).startswith("rocksdb") for key in metrics)


def read_application(events: Iterable[Event]) -> LoggedApplication:
    reader = Reader()
    for event in events:
        reader.take(event)
    return reader.application()


def _offsets(told: Mapping[str, Any], what: str) -> float | None:
    """Sum of Kafka offsets over all sources and partitions; ``None`` if any source is not Kafka."""
    total = 0.0
    for source in told.get("sources", ()):
        text = source.get(what)
        try:
            found = json.loads(text) if isinstance(text, str) else text
        except ValueError:
            return None
        if not isinstance(found, dict) or not found:
            return None
        for partitions in found.values():
            if not isinstance(partitions, dict):
                return None
            total += sum(float(offset) for offset in partitions.values())
    return total if told.get("sources") else None


def _time_s(told: Mapping[str, Any]) -> float:
    return datetime.fromisoformat(str(told["timestamp"])).timestamp()


def _heads(progress: Iterable[_Progress]) -> list[tuple[float, float]]:
    """The topic's newest offsets over time; while a query was idle there was nothing newer than at its last batch."""
    found: list[tuple[float, float]] = []
    for one in progress:
        if one.head is not None:
            found += [(one.idle_s, found[-1][1])] if found and one.idle_s is not None else []
            found.append((one.began_s, one.head))
    return found


def _between(since_s: float, until_s: float, rows: int) -> Births:
    step = (until_s - since_s) / _PARTS
    return Births.of((since_s + step * (i + 0.5), rows / _PARTS) for i in range(_PARTS))


def _by_curve(heads: list[tuple[float, float]], first: float, end: float, rows: int) -> Births:
    """Births interpolated from when the topic's newest offset passed the batch's offsets."""
    step = (end - first) / _PARTS
    return Births.of((_passed_s(heads, first + step * (i + 0.5)), rows / _PARTS) for i in range(_PARTS))


def _passed_s(heads: list[tuple[float, float]], offset: float) -> float:
    at = bisect_left(heads, offset, key=lambda head: head[1])
    if at in (0, len(heads)):
        return heads[min(at, len(heads) - 1)][0]
    (since_s, low), (until_s, high) = heads[at - 1], heads[at]
    return since_s + (until_s - since_s) * (offset - low) / (high - low)


def _assumed(by_offsets: bool) -> str:
    if by_offsets:
        return "births of rows by the topic's newest offsets, as each batch saw them"
    return "rows taken to arrive evenly between the beginnings of two batches; what waited outside is not seen"
