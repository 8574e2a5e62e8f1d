"""Runs a pipeline: starts it in its folder or resumes it there, and stops it between two batches.

The plan in force is a file; whoever writes it (the controller, a person) changes k from the next batch on. The runtime
itself makes no scaling decisions.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from sluicegate.errors import BadInput, SluicegateError, StillWaiting
from sluicegate.runlog.batch_log import BatchRecord, Tail, records_of
from sluicegate.runlog.fault_point import fault_point
from sluicegate.runlog.files import write_whole
from sluicegate.runlog.layout import Layout
from sluicegate.runlog.lock import FolderLock, locked, no_room
from sluicegate.runlog.plan_file import PlanFile, PlanInForce
from sluicegate.spark.edges.feed import Feed
from sluicegate.spark.edges.folder import FolderEdge
from sluicegate.spark.edges.kept import read_stream
from sluicegate.spark.edges.offsets import last_batch
from sluicegate.spark.observe.node_loads import NodeLog
from sluicegate.spark.observe.task_times import TaskTimes
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.graph import RunningGraph, fused
from sluicegate.spark.pipeline.in_flight import InFlight
from sluicegate.spark.pipeline.planned_stream import forget
from sluicegate.spark.pipeline.progress import ProgressLog, Watched
from sluicegate.spark.pipeline.queries import Prepared, prepare
from sluicegate.spark.pipeline.recovery import Recovery
from sluicegate.spark.pipeline.regroup import Hands, Regrouping, settle_regroup
from sluicegate.spark.pipeline.retention import Retention
from sluicegate.spark.pipeline.running_queries import RunningQueries
from sluicegate.spark.pipeline.stable import wait_until_stable
from sluicegate.spark.pipeline.start_checks import (
    WhenStopped,
    added_dead_letters,
    begin_dead_letters,
    check_checkpoint,
    check_key_groups,
    check_pace,
    check_processors,
    check_same,
    check_stopping,
)
from sluicegate.spark.pipeline.watcher import LOOK_EVERY_S, Watcher

LOG = logging.getLogger("sluicegate.pipeline")
_NO_END = "a batch does not end: it is stopped as it is, and runs again"


def start(
    pipeline: Pipeline,
    spark: SparkSession,
    folder: Path | str,
    processors: Mapping[str, int] | None = None,
    fuse: bool = True,
    retry_for_s: float | None = None,
    when_stopped: WhenStopped = "say",
) -> Running:
    """Start a pipeline in its folder, or resume the one that is there.

    ``processors`` is the initial k of new operators (default 1); a resumed operator keeps its planned k. An operator
    that fails is retried with growing pauses for ``retry_for_s`` (default: no limit; operators may have their own
    limit), then stopped; the others keep running. Failures are logged and shown by ``status``; with
    ``when_stopped="raise"``, ``check()`` and ``wait()`` raise for a stopped operator too. ``drain()`` always does.
    """
    check_stopping(pipeline, retry_for_s, when_stopped)
    layout = Layout(Path(folder).absolute())
    groups = fused(pipeline, fuse)
    graph = RunningGraph.of(pipeline, groups)
    lock = locked(layout)
    makes = [*map(layout.edge, graph.streams), *(layout.checkpoint(node.name).parent for node in graph.nodes)]
    first = not any(path.exists() for path in (layout.description, layout.plan, *makes))
    try:
        check_same(layout, graph)
        added = added_dead_letters(layout, graph)
        layout.hold.unlink(missing_ok=True)
        for node in graph.nodes:
            settle_regroup(layout, node.name, node.writes)
        prepared = prepare(pipeline, groups, spark, layout)
        now = graph.with_key_groups({one.group.name: one.key_groups for one in prepared})
        for name, k in (processors or {}).items():
            check_processors(now, name, k)
        for one in prepared:
            begin_dead_letters(one, layout, added)
            check_checkpoint(one, layout)
        write_whole(layout.description, graph.to_json())
        PlanFile(layout.plan).add({node.name: (processors or {}).get(node.name, 1) for node in graph.nodes})
        return Running(pipeline, spark, layout, now, prepared, lock, retry_for_s, when_stopped)
    except OSError as problem:
        lock.close()
        raise no_room(layout, problem) from problem
    except BaseException:
        lock.close()
        if first:
            _forget_failed(layout, graph, makes)
        raise


def _forget_failed(layout: Layout, graph: RunningGraph, made: Sequence[Path]) -> None:
    """Delete what a first start that failed has ``made``: mended code may have other operators and columns."""
    with contextlib.suppress(SluicegateError, OSError), locked(layout):
        planned = any(last_batch(layout.checkpoint(node.name)) is not None for node in graph.nodes)
        if planned or any(FolderEdge(layout.edge(stream)).numbers() for stream in graph.streams):
            return
        for folder in made:
            shutil.rmtree(folder, ignore_errors=True)
        for path in (layout.description, layout.plan):
            path.unlink(missing_ok=True)


class Running:
    """A running pipeline. Use it in a ``with`` block: leaving the block stops it between two batches."""

    def __init__(
        self,
        pipeline: Pipeline,
        spark: SparkSession,
        layout: Layout,
        graph: RunningGraph,
        prepared: list[Prepared],
        lock: FolderLock,
        retry_for_s: float | None = None,
        when_stopped: WhenStopped = "say",
    ) -> None:
        self.layout, self.spark = layout, spark
        self.why_grouped = tuple(one.group.why for one in prepared)
        self._graph, self._when_stopped = graph, when_stopped
        self._lock, self._plan = lock, PlanFile(layout.plan)
        self._prepared = {one.group.name: one for one in prepared}
        self._queries = RunningQueries(pipeline.name, spark, self._prepared)
        watched = {
            name: Watched(one.writer, layout.batches(name), partial(self._queries.get, name))
            for name, one in self._prepared.items()
        }
        self._progress = ProgressLog(watched, TaskTimes(spark))
        self._nodes = NodeLog(spark, layout.nodes)
        limits_s = {name: one.group.retry_for_s(retry_for_s) for name, one in self._prepared.items()}
        self._recovery = Recovery(layout.failures, limits_s)
        self.restarts = self._recovery.past
        """Past failures, one line each."""
        self._stopping = threading.Event()
        hands = Hands(self._queries.rests, self._queries.stop, self._queries.start, self._stopping.is_set)
        self._regrouping = Regrouping(spark, layout, self._prepared, hands)
        self._in_flight = InFlight(layout, graph.sources, self._prepared, self._regrouping)
        self._watcher = Watcher(
            spark=spark,
            layout=layout,
            lock=lock,
            plan=self._plan,
            prepared=self._prepared,
            queries=self._queries,
            recovery=self._recovery,
            regrouping=self._regrouping,
            retention=Retention(layout, graph),
            stopping=self._stopping,
        )
        self.also_check: list[Callable[[], None]] = []
        """Further checks that ``check`` calls; each raises on a problem outside the pipeline."""
        for one in self._prepared.values():
            one.writer.check_folder = lock.check
        try:
            for name in self._prepared:
                self._queries.start(name)
        except BaseException:
            self._close()
            raise
        self._watcher.start(f"sluicegate-{pipeline.name}")

    def __enter__(self) -> Running:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def graph(self) -> RunningGraph:
        """Its operators and streams, with the current numbers of key groups."""
        return self._graph.with_key_groups({name: one.key_groups for name, one in self._prepared.items()})

    def feed(self, source: str) -> Feed:
        """A writer for one of the pipeline's sources."""
        if source not in self.graph.sources:
            raise BadInput(f"no source {source!r} to feed: there is {', '.join(self.graph.sources) or 'none'}")
        readers = tuple(self.layout.checkpoint(name) for name in self.graph.readers(source))
        return Feed(self.layout.edge(source), readers)

    def plan(self) -> PlanInForce:
        return self._plan.read()

    def set_processors(self, processors: Mapping[str, int]) -> None:
        """Set k by hand; it takes effect at the next batch."""
        plan = self.plan()
        for name, k in processors.items():
            check_processors(self.graph, name, k)
        self._plan.change({name: replace(plan.of(name), processors=k, shares=()) for name, k in processors.items()})

    def set_key_groups(self, counts: Mapping[str, int]) -> None:
        """Request another number of key groups; only that operator pauses while its state is repartitioned."""
        plan = self.plan()
        for name, count in counts.items():
            check_key_groups(self.graph, name, count)
        self._plan.change({name: replace(plan.of(name), key_groups=count, groups=()) for name, count in counts.items()})

    def set_paces(self, pace_s: Mapping[str, float]) -> None:
        """Set the minimum time between batch starts of operators; 0 runs batches back to back."""
        plan = self.plan()
        for name, pace in pace_s.items():
            check_pace(self.graph, name, pace)
        self._plan.change({name: replace(plan.of(name), pace_s=pace) for name, pace in pace_s.items()})

    def place(self, hosts: Mapping[str, tuple[str, ...]]) -> None:
        """Set the preferred hosts of each operator's tasks; for operators not named, the plan's hosts apply again."""
        for name, one in self._prepared.items():
            one.writer.hosts = hosts.get(name, ())

    def disturbed(self, until_s: float) -> None:
        """Mark batches that begin before ``until_s`` as cold: something outside slows them, so nothing is learned."""
        for one in self._prepared.values():
            one.writer.disturbed_until_s = until_s

    def records(self, name: str) -> list[BatchRecord]:
        """The batches of one operator that are still in its log."""
        return list(records_of(Tail(self.layout.batches(name)).lines()))

    def read(self, stream: str) -> DataFrame:
        """A batch DataFrame of the rows that a kept stream holds now; its sink says how long rows are kept."""
        if self.graph.keep_s.get(stream) == 0:
            raise BadInput(f"the sink of {stream!r} keeps no rows: read them where its write= puts them")
        return read_stream(self.spark, self.layout.folder, stream)

    @property
    def stopped(self) -> Mapping[str, SluicegateError]:
        """The operators that have stopped, with the error of each; the others keep running."""
        return self._recovery.stopped

    @property
    def problem(self) -> SluicegateError | None:
        """The error that ended the whole pipeline, if one did."""
        return self._watcher.problem

    def idle(self) -> bool:
        """Whether every row on an edge is in a committed batch; timers may still be pending."""
        return self._in_flight.none()

    def drain(self, timeout_s: float = 600.0) -> None:
        """Wait until every row, also if fed meanwhile, has left; raises if an operator or the pipeline has stopped."""
        fed = self._in_flight.fed()
        wait_until_stable(
            self._drained, self._in_flight.batches, timeout_s, lambda: self._why_rows_wait(fed), self._check_drains
        )

    def wait(self, seconds: float | None = None) -> None:
        """Block until something fails, which is raised, ``seconds`` have passed, or ``stop`` was called elsewhere."""
        until = None if seconds is None else time.monotonic() + seconds
        while not self._watcher.closed.is_set() and (until is None or time.monotonic() < until):
            self.check()
            time.sleep(LOOK_EVERY_S)

    @property
    def rows_read(self) -> dict[str, int]:
        """Rows that batches read from native Spark sources since the start, by source."""
        found = ((one.group.first.source, one.writer.foreign) for one in self._prepared.values())
        return {name: foreign.rows for name, foreign in found if name is not None and foreign is not None}

    @property
    def most_tasks(self) -> dict[str, int]:
        """By operator that reads Kafka: how many tasks have rows to read."""
        found = {name: one.writer.foreign for name, one in self._prepared.items()}
        return {name: foreign.tasks for name, foreign in found.items() if foreign is not None and foreign.tasks}

    def admit_no_more(self, edges: bool = True) -> None:
        """Stop reading from native Spark sources and, with ``edges``, from the source edges that programs feed.

        In-flight rows are still processed, and ``drain`` waits only for those; the rest waits for the next start.
        """
        if edges:
            self._in_flight.close_sources()
        for one in self._prepared.values():
            if one.writer.foreign is not None:
                one.writer.foreign.hold()

    def stop(self, timeout_s: float = 120.0) -> None:
        """Start no new batches, wait for running ones, stop all queries. Backlog on edges stays for the next start."""
        if self._watcher.closed.is_set():
            return
        self._stopping.set()
        self.admit_no_more(edges=False)  # edges poll the hold file
        for one in self._prepared.values():
            one.writer.held = True
        try:
            self._lock.check()  # or the folder is that of another pipeline by now
            write_whole(self.layout.hold, "stopping\n")
            fault_point("stopping")
            self._regrouping.join(timeout_s)
            wait_until_stable(self._queries.between_batches, self._queries.last_batches, timeout_s, lambda: _NO_END)
        except (SluicegateError, OSError) as problem:
            self.restarts.append(str(problem))
        finally:
            self._close()

    def check(self) -> None:
        """Raise the pipeline's error, or a stopped operator's if ``when_stopped`` is "raise" or all have stopped."""
        if self.problem is not None:
            raise self.problem
        stopped = self.stopped
        if stopped and (self._when_stopped == "raise" or len(stopped) == len(self._prepared)):
            raise next(iter(stopped.values()))
        for look in self.also_check:
            look()

    def _drained(self) -> bool:
        """``idle``; raises if a thread or a signal handler has stopped the pipeline, since nothing moves any more."""
        if self.idle():
            return True
        if self._watcher.closed.is_set():
            raise StillWaiting("the pipeline was stopped: rows that wait are processed at its next start")
        return False

    def _why_rows_wait(self, fed: Mapping[str, int]) -> str:
        return "; ".join(self._recovery.lines(time.monotonic())) or self._in_flight.why(fed)

    def _check_drains(self) -> None:
        if self._stopping.is_set():
            return
        self.check()
        for problem in self.stopped.values():
            raise problem

    def _close(self) -> None:
        self._watcher.close()
        self._recovery.close(time.monotonic())
        for one in self._prepared.values():
            if one.writer.foreign is not None:
                one.writer.foreign.close()
        self._progress.close()
        self._nodes.close()
        for name in self._queries.stop_all():
            self.restarts.append(f"{name}: its code does not end: given up; its batch runs again at the next start")
            LOG.warning("sluicegate: %s", self.restarts[-1])
        with contextlib.suppress(PySparkException, Py4JError, OSError):
            for planner in (planner for one in self._prepared.values() for planner in one.planners):
                forget(self.spark, planner)
        with contextlib.suppress(SluicegateError, OSError):
            self._lock.check()
            self.layout.hold.unlink(missing_ok=True)
        self._lock.close()
