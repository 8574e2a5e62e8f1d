"""Runs a pipeline in real-time mode: one query, measured by its output rows, rescaled by a restart.

A rescale waits until the running batch is committed, while rows continue to flow; then the query is stopped between two
batches and restarted with other numbers of tasks. So every row is in the sink once, and the cost of a rescale is the
pause from that commit to the first output row after it, which is measured and used in the next decision. After a crash
Spark runs the unfinished batch again, and its rows are in the sink's topic twice, as with any Kafka sink.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from sluicegate.domain.births import Births
from sluicegate.errors import SluicegateError, StillWaiting
from sluicegate.runlog.batch_log import BatchRecord, append_line
from sluicegate.runlog.files import write_whole
from sluicegate.runlog.layout import Layout
from sluicegate.runlog.lock import FolderLock, locked
from sluicegate.runlog.plan_file import PlanFile
from sluicegate.spark.cluster.waiting import wait_until
from sluicegate.spark.edges.offsets import last_batch, last_committed
from sluicegate.spark.edges.topic import KafkaTopic
from sluicegate.spark.kafka.offsets import planned
from sluicegate.spark.kafka.records import BrokerDoesNotAnswer
from sluicegate.spark.pipeline.graph import RunningGraph
from sluicegate.spark.pipeline.start_checks import check_same
from sluicegate.spark.realtime.marks import Timed, as_document, figures, intake
from sluicegate.spark.realtime.program import COUNTED, SETTINGS, Program
from sluicegate.spark.realtime.stages import BATCH_S, begin_with, reserve
from sluicegate.spark.realtime.topics import SinkRows, TopicEnds, partitions_of

_LOG_EVERY_S = 1.0
_POLL_S = 0.1
_COLD_S = 15.0
"""Rows of the first seconds include compilation and are not used. At half, the first decisions are based on them."""
_REST_S = 60.0
"""How long to wait for a batch beyond its 5 s; longer means that the machine or the broker is stuck."""


class QueryFailed(SluicegateError):
    """The real-time query ended by itself."""

    exit_code = 1


class RealTimeRunning:
    """A running real-time pipeline; leaving its ``with`` block stops it between two batches."""

    def __init__(
        self,
        spark: SparkSession,
        program: Program,
        folder: Path,
        graph: RunningGraph,
        source: KafkaTopic,
        processors: Mapping[str, int],
        slots: int,
    ) -> None:
        self.graph, self.layout, self.program, self.spark = graph, Layout(folder.absolute()), program, spark
        self.names = tuple(node.name for node in graph.nodes)
        asked = begin_with(graph, processors)
        reserve(asked, slots)
        for key, value in SETTINGS.items():
            spark.conf.set(key, value)
        program.rows(spark, asked)  # refuses invalid operators before anything is written
        self._lock: FolderLock = locked(self.layout)
        self._plan, self._slots, self._source = PlanFile(self.layout.plan), slots, source
        self._checkpoint = self.layout.checkpoint(self.names[0])
        jvm: Any = spark._jvm
        self._boundary = jvm.sluicegate.BatchBoundary
        self.problem: SluicegateError | None = None
        self.also_check: list[Callable[[], None]] = []
        self.restarts: list[str] = []
        self.pauses_s: list[float] = []
        self._rescaling, self._resumed_s, self._warm_at_s = False, 0.0, time.time() + _COLD_S
        self._rows: list[Timed] = []
        self._told: int | None = None
        self._ended = threading.Event()
        try:
            check_same(self.layout, graph)
            write_whole(self.layout.description, graph.to_json())
            self._plan.add(asked)
            self.running = self._planned()  # a resumed pipeline continues with its plan
            reserve(self.running, slots)
            self._ends = TopicEnds(source, graph.nodes[0].key_groups)
            self._sink = SinkRows(program.sink, partitions_of(program.sink))
            self._query: StreamingQuery = self._start(self.running)
        except BaseException:
            self._lock.close()
            raise
        self._turn = threading.Lock()
        self._threads = [
            threading.Thread(target=self._guarded, args=(work,), name=f"sluicegate-{name}", daemon=True)
            for name, work in (("sink", self._measure), ("plan", self._follow))
        ]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> RealTimeRunning:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def check(self) -> None:
        """Raise the error that ended the query or one of the threads beside it."""
        if self.problem is not None:
            raise self.problem
        self._lock.check()
        for other in self.also_check:
            other()

    @property
    def behind(self) -> int:
        """Rows of the topic that no committed batch has read."""
        number = last_committed(self._checkpoint)
        taken = planned(self._checkpoint, -1 if number is None else number)
        ends = self._ends_now()
        return sum(end - taken.get(f"0/{self._source.topic}/{p}", 0) for p, end in ends.items())

    def drain(self, limit_s: float = 180.0) -> None:
        """Wait until all rows of the topic are processed and committed."""
        until, left = time.monotonic() + limit_s, "some"
        while True:
            with contextlib.suppress(BrokerDoesNotAnswer):
                if not (behind := self.behind):
                    return
                left = f"{behind:,}"
            self.check()
            if time.monotonic() > until:
                raise StillWaiting(f"{left} rows of {self._source.topic!r} are not through after {limit_s:g} s")
            time.sleep(0.2)

    def is_warm(self) -> None:
        """Mark the query as warm: from now on its rows are used for measurement."""
        self._warm_at_s = 0.0

    def set_plan(self, processors: Mapping[str, int]) -> None:
        """Change the plan by hand, as the controller does; the query follows it."""
        reserve(processors, self._slots)
        plan = self._plan.read()
        self._plan.change({name: replace(plan.of(name), processors=k) for name, k in processors.items()})

    def wait_for(self, processors: Mapping[str, int], limit_s: float = 120.0) -> None:
        """Wait until ``processors`` are in force and rows come out again."""
        until = time.monotonic() + limit_s
        while self.running != dict(processors) or self._resumed_s:
            self.check()
            if time.monotonic() > until:
                raise StillWaiting(f"{dict(processors)} does not run after {limit_s:g} s")
            time.sleep(0.1)

    def rescale(self, want: Mapping[str, int]) -> float:
        """Restart between two batches with other numbers of tasks; returns the time at which it stopped."""
        reserve(want, self._slots)
        with self._turn:
            self._rescaling = True
            try:
                stood_s = self._stop_between_batches()
                self._query = self._start(want)
                have, self.running, self._resumed_s = self.running, dict(want), stood_s
            finally:
                self._rescaling = False
        moved = ", ".join(f"{name} {have[name]} -> {k}" for name, k in want.items() if have[name] != k)
        self._say(f"restarted between two batches: {moved}")
        return stood_s

    def stop(self) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()
        with self._turn, contextlib.suppress(Py4JError, PySparkException, OSError, SluicegateError):
            if self._query.isActive:
                self._stop_between_batches()
        with contextlib.suppress(Py4JError, PySparkException, OSError):
            self._query.stop()  # a batch that does not end is aborted, and runs again at the next start
        self._log(time.time(), _LOG_EVERY_S, 0)
        self._sink.close()
        self._ends.close()
        self._lock.close()

    def _planned(self) -> dict[str, int]:
        plan = self._plan.read()
        fixed = self.graph.nodes[0]
        return {name: fixed.key_groups if name == fixed.name else plan.of(name).processors for name in self.names}

    def _start(self, processors: Mapping[str, int]) -> StreamingQuery:
        return self.program.start(self.spark, str(self._checkpoint), processors)

    def _stop_between_batches(self) -> float:
        """Stop the query with all its output committed; returns the time at which it was between two batches."""
        query = self._query
        boundary = self._boundary.hold(query._jsq.streamingQuery())
        try:
            limit_s = BATCH_S + _REST_S
            reached = wait_until(lambda: boundary.reached(250) or not query.isActive, limit_s, 0.0)
            self._raise_if_failed(query)
            if not reached:
                raise StillWaiting(
                    f"a real-time batch does not end within {_REST_S:g} s of its time: nothing was moved"
                )
            stood_s = time.time()
            wait_until(lambda: last_committed(self._checkpoint) == last_batch(self._checkpoint), _REST_S, 0.01)
            stopping = threading.Thread(target=query.stop, daemon=True)
            stopping.start()
            wait_until(lambda: not query.isActive, _REST_S, 0.01)  # from here on it cannot begin a batch
            boundary.release()
            stopping.join(_REST_S)
            return stood_s
        finally:
            boundary.release()

    def _follow(self) -> None:
        """Rescale the query whenever the plan changes."""
        while not self._ended.wait(0.5):
            self._check_query()
            want = self._planned()
            if want != self.running and sum(want.values()) <= self._slots:
                self.rescale(want)

    def _check_query(self) -> None:
        with self._turn:
            self._raise_if_failed(self._query)

    def _raise_if_failed(self, query: StreamingQuery) -> None:
        problem = None if query.isActive else query.exception()
        if problem is not None:
            said = str(problem).strip().splitlines()[0][:300]
            raise QueryFailed(f"the real-time query ended: {said}; start again in the same folder")

    def _measure(self) -> None:
        """Read the output rows and log their statistics once a second."""
        at_s, total = time.time(), sum(self._ends_now().values())
        while not self._ended.is_set():
            self._rows += self._sink.take(_POLL_S)
            now_s = time.time()
            if now_s - at_s < _LOG_EVERY_S:
                continue
            with contextlib.suppress(BrokerDoesNotAnswer):  # retried at the next poll
                came = sum(self._ends_now().values())
                self._log(now_s, now_s - at_s, came - total)
                at_s, total = now_s, came

    def _log(self, now_s: float, span_s: float, came: int) -> None:
        rows, self._rows = self._rows, []
        self._count_pause(rows)
        every = max(len(rows) // 200, 1)
        document = {
            "at_s": round(now_s, 3),
            "span_s": round(span_s, 3),
            "came": came,
            "out": len(rows),
            "running": dict(self.running),
            "cold": now_s < self._warm_at_s,
            "rescaling": self._rescaling or self._resumed_s > 0,
            "pause_s": self.pauses_s[-1] if self.pauses_s else None,
            "pauses": len(self.pauses_s),
            "counted": self._counted(),
            "stages": as_document(figures(rows, self.names)),
            "intake": [round(at_s, 3) for at_s in intake(rows)],
            "ages": [[round(row.out_s - row.born_s, 4), every] for row in rows[::every]],
        }
        append_line(self.layout.stages, json.dumps(document))
        if rows:
            self._log_last_stage(rows, now_s, span_s)

    def _counted(self) -> dict[str, int]:
        """Rows that every stage took in the last finished batch; empty if that was logged already."""
        told = None
        with contextlib.suppress(Py4JError, PySparkException, OSError):
            told = self._query.lastProgress
        progress = json.loads(told.json) if told is not None else {}
        batch = progress.get("batchId")
        if batch is None or batch == self._told:
            return {}
        self._told, seen = batch, progress.get("observedMetrics") or {}
        return {name: int((seen.get(f"{COUNTED}{name}") or {}).get("rows", 0)) for name in self.names}

    def _log_last_stage(self, rows: list[Timed], now_s: float, span_s: float) -> None:
        """Log the last stage's rows as a batch line, so that reports and dashboards can read it like any other run."""
        name = self.names[-1]
        born = Births.of((now_s - max(row.out_s - row.born_s, 0.0), 1.0) for row in rows)
        k, busy_s = self.running[name], figures(rows, self.names)[name].service_s
        one = BatchRecord(int(now_s), now_s - span_s, now_s, span_s, len(rows), len(rows), k, None, born, work_s=busy_s)
        append_line(self.layout.batches(name), one.to_json())

    def _count_pause(self, rows: list[Timed]) -> None:
        """Record the pause of a restart: from the commit it stopped at to the first output row read after it."""
        after = [row.out_s for row in rows if row.stages[0][0] > self._resumed_s] if self._resumed_s else []
        if after:
            self.pauses_s.append(round(max(min(after) - self._resumed_s, 0.0), 3))
            self._resumed_s = 0.0
            self._say("rows come out again", self.pauses_s[-1])

    def _say(self, what: str, pause_s: float | None = None) -> None:
        line: dict[str, object] = {"at_s": round(time.time(), 3), "what": what, "decision": self._plan.read().decision}
        if pause_s is not None:
            line["pause_s"] = pause_s
        append_line(self.layout.fleet, json.dumps(line))

    def _ends_now(self) -> dict[int, int]:
        return self._ends.ends()

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except SluicegateError as problem:
            self.problem = problem
        except (Py4JError, PySparkException, OSError) as problem:
            if not self._ended.is_set():
                self.problem = QueryFailed(
                    f"the real-time query cannot be followed: {str(problem).splitlines()[0][:300]}"
                )
