"""A running pipeline: its queries started, watched, stopped between two batches, and resumed where they were.

The plan in force is a file; whoever writes it (the controller, a person) moves k at the next batch. The runtime itself
decides nothing.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from types import TracebackType

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from sluicegate.errors import BadInput, SluicegateError, StillWaiting
from sluicegate.runlog.batch_log import BatchRecord, Tail
from sluicegate.runlog.files import write_whole
from sluicegate.runlog.layout import Layout
from sluicegate.runlog.plan_file import Plan, PlanFile
from sluicegate.spark.edges.feed import Feed
from sluicegate.spark.edges.folder import FolderEdge
from sluicegate.spark.edges.kept import read_stream
from sluicegate.spark.edges.offsets import committed, last_batch, last_committed
from sluicegate.spark.observe.node_loads import NodeLog
from sluicegate.spark.observe.task_times import TaskTimes
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.failures import OperatorFailed, slow_start, told
from sluicegate.spark.pipeline.graph import RunningGraph, fused
from sluicegate.spark.pipeline.planned_stream import forget
from sluicegate.spark.pipeline.progress import ProgressLog, Watched
from sluicegate.spark.pipeline.queries import Prepared, prepare, start_query
from sluicegate.spark.pipeline.start_checks import check_checkpoint, check_processors, check_same, locked, no_room

_LOOK_EVERY_S = 0.5
_CLEAN_EVERY_S = 2.0
_RETRIES = 2
_SLOW_STARTS = 10
"""How often a Python process may come too late: that is the machine's load, not the operator's code."""
_STABLE_S = 0.6
"""Nothing may start for this long before a query is stopped: a source looks at the hold at least this often."""


def start(
    pipeline: Pipeline,
    spark: SparkSession,
    folder: Path | str,
    processors: Mapping[str, int] | None = None,
    fuse: bool = True,
) -> Running:
    """Start a pipeline in its folder, or resume the one that is there.

    ``processors`` are what a new operator starts with (1 where not given); a resumed one goes on with its plan.
    """
    layout = Layout(Path(folder).absolute())
    groups = fused(pipeline, fuse)
    graph = RunningGraph.of(pipeline, groups)
    for name, k in (processors or {}).items():
        check_processors(graph, name, k)
    lock = locked(layout)
    try:
        check_same(layout, graph)
        layout.hold.unlink(missing_ok=True)
        prepared = prepare(pipeline, groups, spark, layout)
        for one in prepared:
            check_checkpoint(one, layout)
        write_whole(layout.description, graph.to_json())
        PlanFile(layout.plan).add({node.name: (processors or {}).get(node.name, 1) for node in graph.nodes})
        return Running(pipeline, spark, layout, graph, prepared, lock)
    except OSError as problem:
        lock.close()
        raise no_room(layout, problem) from problem
    except BaseException:
        lock.close()
        raise


class Running:
    """A pipeline at work. Use it in a ``with`` block: leaving stops it between two batches."""

    def __init__(
        self,
        pipeline: Pipeline,
        spark: SparkSession,
        layout: Layout,
        graph: RunningGraph,
        prepared: list[Prepared],
        lock: TextIOWrapper,
    ) -> None:
        self.graph, self.layout, self.spark = graph, layout, spark
        self.why_grouped = tuple(one.group.why for one in prepared)
        self._lock, self._plan = lock, PlanFile(layout.plan)
        self._prepared = {one.group.name: one for one in prepared}
        self._names = {name: f"{pipeline.name}.{name}" for name in self._prepared}
        self._queries: dict[str, StreamingQuery] = {}
        watched = {
            name: Watched(one.writer, layout.batches(name), partial(self._queries.get, name))
            for name, one in self._prepared.items()
        }
        self._progress = ProgressLog(watched, TaskTimes(spark))
        self._nodes = NodeLog(spark, layout.nodes)
        self._failures: dict[str, tuple[int | None, int]] = {}
        self.problem: SluicegateError | None = None
        self.restarts: list[str] = []
        self._ended, self._stopping = threading.Event(), False
        self._closed: frozenset[str] = frozenset()
        self._watcher = threading.Thread(target=self._watch, name=f"sluicegate-{pipeline.name}", daemon=True)
        try:
            for name in self._prepared:
                self._start(name)
        except BaseException:
            self._close()
            raise
        self._watcher.start()

    def __enter__(self) -> Running:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def feed(self, source: str) -> Feed:
        """A writer for one of the pipeline's sources."""
        if source not in self.graph.sources:
            raise BadInput(f"no source {source!r} to feed: there is {', '.join(self.graph.sources) or 'none'}")
        readers = tuple(self.layout.checkpoint(name) for name in self.graph.readers(source))
        return Feed(self.layout.edge(source), readers)

    def plan(self) -> Plan:
        return self._plan.read()

    def set_processors(self, processors: Mapping[str, int]) -> None:
        """Move k by hand; it is in force at the next batch."""
        plan = self.plan()
        for name, k in processors.items():
            check_processors(self.graph, name, k)
        self._plan.change({name: replace(plan.of(name), processors=k, shares=()) for name, k in processors.items()})

    def set_paces(self, pace_s: Mapping[str, float]) -> None:
        """Let operators start a batch at most so often; 0 is back to back."""
        plan = self.plan()
        self._plan.change({name: replace(plan.of(name), pace_s=pace) for name, pace in pace_s.items()})

    def place(self, hosts: Mapping[str, tuple[str, ...]]) -> None:
        """Say on which hosts the tasks of each operator should run; Spark chooses for those that are not named."""
        for name, one in self._prepared.items():
            one.writer.hosts = hosts.get(name, ())

    def disturbed(self, until_s: float) -> None:
        """Learn nothing from batches that begin before then: something beside them makes them slow."""
        for one in self._prepared.values():
            one.writer.disturbed_until_s = until_s

    def records(self, name: str) -> list[BatchRecord]:
        """The batches of one operator that are still in its log."""
        return [BatchRecord.from_json(line) for line in Tail(self.layout.batches(name)).lines()]

    def read(self, stream: str) -> DataFrame:
        """All rows now on a stream whose edge is kept, as a plain DataFrame."""
        return read_stream(self.spark, self.layout.folder, stream)

    def idle(self) -> bool:
        """Whether every row that is on an edge has been taken and its batch committed."""
        return all(self._caught_up(name) for name in self._prepared)

    def drain(self, timeout_s: float = 600.0) -> None:
        """Wait until every row fed so far has come out at the end."""
        self._wait(self.idle, timeout_s, "rows still wait: give more time, more processors, or look at what fails")

    def wait(self, seconds: float | None = None) -> None:
        """Until something goes wrong, which is raised, or ``seconds`` have passed."""
        until = None if seconds is None else time.monotonic() + seconds
        while until is None or time.monotonic() < until:
            self.check()
            time.sleep(_LOOK_EVERY_S)

    @property
    def rows_read(self) -> dict[str, int]:
        """Rows that batches took from streams of Spark's own since the start, by source."""
        found = ((one.group.first.source, one.writer.foreign) for one in self._prepared.values())
        return {name: foreign.rows for name, foreign in found if name is not None and foreign is not None}

    @property
    def most_tasks(self) -> dict[str, int]:
        """By operator that reads Kafka: how many tasks have rows to read."""
        found = {name: one.writer.foreign for name, one in self._prepared.items()}
        return {name: foreign.tasks for name, foreign in found.items() if foreign is not None and foreign.tasks}

    def admit_no_more(self, edges: bool = True) -> None:
        """Take nothing more from outside, from streams of Spark's own and from ``edges`` that others feed.

        What was taken goes on, and ``drain`` waits for that alone; what was not waits for the next start.
        """
        if edges:
            self._closed = frozenset(self.graph.sources)
            for planner in (planner for one in self._prepared.values() for planner in one.planners):
                planner.closed = planner.edge.folder.name in self._closed
        for one in self._prepared.values():
            if one.writer.foreign is not None:
                one.writer.foreign.hold()

    def stop(self, timeout_s: float = 120.0) -> None:
        """Let running batches end, start no new one, then stop. What waits on the edges waits for the next start."""
        if self._ended.is_set():
            return
        self._stopping = True
        self.admit_no_more(edges=False)  # edges look at the hold
        for one in self._prepared.values():
            one.writer.held = True
        try:
            write_whole(self.layout.hold, "stopping\n")
            self._wait(self._between_batches, timeout_s, "a batch does not end: it is stopped as it is, and runs again")
        except (SluicegateError, OSError) as problem:
            self.restarts.append(str(problem))
        finally:
            self._close()

    def check(self) -> None:
        """Raise what went wrong, if anything did."""
        if self.problem is not None:
            raise self.problem

    def _caught_up(self, name: str) -> bool:
        writer = self._prepared[name].writer
        if not _idle(writer.checkpoint):
            return False
        done = committed(writer.checkpoint)
        reads = {stream: edge for stream, edge in writer.reads.items() if stream not in self._closed}
        return not any(m.rows for stream, edge in reads.items() for m in edge.since(done.get(stream, 0)))

    def _between_batches(self) -> bool:
        return all(self._settled(name, query) for name, query in self._queries.items())

    def _settled(self, name: str, query: StreamingQuery) -> bool:
        """Neither in a batch nor on its way to the first one; a query that ended by itself has no batch."""
        if not query.isActive:
            return True
        return _idle(self._prepared[name].writer.checkpoint) and not _starts(query)

    def _started(self) -> int:
        return sum(one.writer.started for one in self._prepared.values())

    def _wait(self, done: Callable[[], bool], timeout_s: float, otherwise: str) -> None:
        """Until ``done`` holds and has held for a moment in which no batch started."""
        until, since, seen = time.monotonic() + timeout_s, None, -1
        while True:
            if not self._stopping:
                self.check()
            now, count = time.monotonic(), self._started()
            if not done() or count != seen:
                since, seen = None, count
            elif since is None:
                since = now
            elif now - since >= _STABLE_S:
                return
            if now > until:
                raise StillWaiting(f"waited {timeout_s:g} s: {otherwise}")
            time.sleep(0.05)

    def _watch(self) -> None:
        """Restart what failed, up to a point; delete what every reader has committed. Whatever goes wrong is told."""
        cleaned = time.monotonic()
        while not self._ended.wait(_LOOK_EVERY_S) and self.problem is None:
            try:
                for name, query in list(self._queries.items()):
                    if not query.isActive:
                        self._failed(name, query)
                if time.monotonic() - cleaned >= _CLEAN_EVERY_S:
                    self._clean()
                    cleaned = time.monotonic()
            except SluicegateError as problem:
                self.problem = problem
            except Exception as problem:
                self.problem = SluicegateError(
                    f"Spark or the disk failed ({type(problem).__name__}: {problem}): start again in the same folder"
                )

    def _clean(self) -> None:
        done = {name: committed(one.writer.checkpoint) for name, one in self._prepared.items()}
        streams = {*self.graph.sources, *(s for node in self.graph.nodes for s in node.writes)}
        for stream in streams - set(self.graph.kept):
            taken = [done[name].get(stream, 0) for name in self.graph.readers(stream)]
            FolderEdge(self.layout.edge(stream)).clean(min(taken, default=0))

    def _failed(self, name: str, query: StreamingQuery) -> None:
        if self._stopping:
            return
        problem = query.exception()
        at = last_batch(self._prepared[name].writer.checkpoint)
        before, times = self._failures.get(name, (None, 0))
        times = times + 1 if before == at else 1
        self._failures[name] = (at, times)
        why = told(problem) if isinstance(problem, StreamingQueryException) else "its query ended by itself"
        most = _RETRIES if not slow_start(why) else _SLOW_STARTS
        if times > most:
            self.problem = OperatorFailed(name, at, why)
            return
        self.restarts.append(f"{name}: batch {at} failed ({why}), tried again ({times} of {most})")
        if not self._ended.wait(0.5 * times) and not self._stopping:
            self._prepared[name].writer.tidy()
            self._start(name)

    def _start(self, name: str) -> None:
        self._queries[name] = start_query(self.spark, self._prepared[name], self._names[name])

    def _close(self) -> None:
        self._ended.set()
        if self._watcher.is_alive():
            self._watcher.join()
        for one in self._prepared.values():
            if one.writer.foreign is not None:
                one.writer.foreign.close()
        self._progress.close()
        self._nodes.close()
        for query in self._queries.values():
            with contextlib.suppress(PySparkException, Py4JError, OSError):  # Spark itself may be gone
                query.stop()
        with contextlib.suppress(PySparkException, Py4JError, OSError):
            for planner in (planner for one in self._prepared.values() for planner in one.planners):
                forget(self.spark, planner)
            self.layout.hold.unlink(missing_ok=True)
        self._lock.close()


def _starts(query: StreamingQuery) -> bool:
    return query.isActive and "Initializing" in query.status["message"]


def _idle(checkpoint: Path) -> bool:
    return last_committed(checkpoint) == last_batch(checkpoint)
