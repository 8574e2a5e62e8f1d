"""Runs a pipeline: starts its queries, restarts those that fail, stops them between batches, resumes them later.

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
from typing import Literal, get_args

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from sluicegate.errors import BadInput, SluicegateError, StillWaiting
from sluicegate.runlog.batch_log import BatchRecord, Tail, records_of
from sluicegate.runlog.failures import Failing
from sluicegate.runlog.fault_point import fault_point
from sluicegate.runlog.files import write_whole
from sluicegate.runlog.layout import Layout
from sluicegate.runlog.lock import FolderLock, locked, no_room
from sluicegate.runlog.plan_file import PlanFile, PlanInForce
from sluicegate.spark.edges.feed import Feed
from sluicegate.spark.edges.folder import FolderEdge
from sluicegate.spark.edges.kept import read_stream
from sluicegate.spark.edges.offsets import (
    between_batches,
    committed,
    last_batch,
    last_committed,
    only_timers,
    place_of,
)
from sluicegate.spark.observe.hot_key import HotKeys
from sluicegate.spark.observe.node_loads import NodeLog
from sluicegate.spark.observe.task_times import TaskTimes
from sluicegate.spark.pipeline.declaration import Pipeline, check_retry
from sluicegate.spark.pipeline.failures import ENDED, Failure, Fault, failure_of
from sluicegate.spark.pipeline.graph import RunningGraph, fused
from sluicegate.spark.pipeline.planned_stream import forget
from sluicegate.spark.pipeline.progress import ProgressLog, Watched
from sluicegate.spark.pipeline.queries import Prepared, prepare, start_query
from sluicegate.spark.pipeline.recovery import Recovery
from sluicegate.spark.pipeline.regroup import Hands, Regrouping, settle_regroup
from sluicegate.spark.pipeline.retention import Retention
from sluicegate.spark.pipeline.start_checks import (
    added_dead_letters,
    begin_dead_letters,
    check_checkpoint,
    check_key_groups,
    check_pace,
    check_processors,
    check_same,
)
from sluicegate.spark.session import spark_is_gone

LOG = logging.getLogger("sluicegate.pipeline")
_LOOK_EVERY_S = 0.5
_ENDS_WITHIN_S = 1.0
"""How long to wait for Spark to end a query whose batch has failed; if it takes longer, the next poll finds it."""
_CLEAN_EVERY_S = 2.0
_WORKS_AGAIN_S = 5.0
"""A restarted query that has run for this long and has no batch to finish counts as recovered."""
_STABLE_S = 0.6
"""No batch may start for this long before a query is stopped: sources poll the hold file at least this often."""
_NO_END = "a batch does not end: it is stopped as it is, and runs again"
_LETS_GO_WITHIN_S = 30.0
"""How long Spark may take to stop a query. Code in the driver that hangs (a sink's ``write``) is never interrupted."""
WhenStopped = Literal["say", "raise"]


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


def check_stopping(pipeline: Pipeline, retry_for_s: float | None, when_stopped: str) -> None:
    """Refuse options about operators that fail which ``start`` does not know."""
    check_retry("pipeline", pipeline.name, retry_for_s)
    if when_stopped not in get_args(WhenStopped):
        raise BadInput(f"when_stopped is {when_stopped!r}: give one of {', '.join(get_args(WhenStopped))}")


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
        limits_s = {name: one.group.retry_for_s(retry_for_s) for name, one in self._prepared.items()}
        self._recovery, self._when_stopped = Recovery(layout.failures, limits_s), when_stopped
        self._down: set[str] = set()
        """Operators whose query has ended and waits for its next retry."""
        self.problem: SluicegateError | None = None
        """The error that ended the whole pipeline."""
        self.restarts = self._recovery.past
        """Past failures, one line each."""
        hands = Hands(self._rests, self._stop_alone, self._start, lambda: self._stopping)
        self._regrouping = Regrouping(spark, layout, self._prepared, hands)
        self._hot_keys = {
            name: HotKeys(
                one.stream,
                layout.hot_key(name),
                tuple(e for e in one.writer.reads.values() if isinstance(e, FolderEdge)),
            )
            for name, one in self._prepared.items()
            if one.writer.groups is not None
        }
        self._retention = Retention(layout, graph)
        self.also_check: list[Callable[[], None]] = []
        """Further checks that ``check`` calls; each raises on a problem outside the pipeline."""
        self._ended, self._stopping, self._trouble = threading.Event(), False, threading.Event()
        for one in self._prepared.values():
            one.writer.trouble = self._trouble
            one.writer.check_folder = lock.check
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

    def idle(self) -> bool:
        """Whether every row on an edge is in a committed batch; timers may still be pending."""
        return all(self._caught_up(name) for name in self._prepared)

    def drain(self, timeout_s: float = 600.0) -> None:
        """Wait until every row, also if fed meanwhile, has left; raises if an operator or the pipeline has stopped."""
        fed = self._fed()
        self._wait(self._drained, self._moves, timeout_s, lambda: self._why_rows_wait(fed))

    def wait(self, seconds: float | None = None) -> None:
        """Block until something fails, which is raised, ``seconds`` have passed, or ``stop`` was called elsewhere."""
        until = None if seconds is None else time.monotonic() + seconds
        while not self._ended.is_set() and (until is None or time.monotonic() < until):
            self.check()
            time.sleep(_LOOK_EVERY_S)

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
            self._closed = frozenset(self.graph.sources)
            for planner in (planner for one in self._prepared.values() for planner in one.planners):
                planner.closed = planner.edge.folder.name in self._closed
        for one in self._prepared.values():
            if one.writer.foreign is not None:
                one.writer.foreign.hold()

    def stop(self, timeout_s: float = 120.0) -> None:
        """Start no new batches, wait for running ones, stop all queries. Backlog on edges stays for the next start."""
        if self._ended.is_set():
            return
        self._stopping = True
        self.admit_no_more(edges=False)  # edges poll the hold file
        for one in self._prepared.values():
            one.writer.held = True
        try:
            self._lock.check()  # or the folder is that of another pipeline by now
            write_whole(self.layout.hold, "stopping\n")
            fault_point("stopping")
            self._regrouping.join(timeout_s)
            self._wait(self._between_batches, self._planned, timeout_s, lambda: _NO_END)
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
        if self._ended.is_set():
            raise StillWaiting("the pipeline was stopped: rows that wait are processed at its next start")
        return False

    def _caught_up(self, name: str) -> bool:
        if name in self._regrouping.moving:
            return False
        writer = self._prepared[name].writer
        busy = not between_batches(writer.checkpoint) or writer.another_is_due()
        if busy and not only_timers(writer.checkpoint):
            return False
        done = committed(writer.checkpoint)
        reads = {stream: edge for stream, edge in writer.reads.items() if stream not in self._closed}
        return not any(m.matters for stream, edge in reads.items() for m in edge.since(done.get(stream, 0)))

    def _between_batches(self) -> bool:
        return all(self._settled(name, query) for name, query in self._queries.items())

    def _settled(self, name: str, query: StreamingQuery) -> bool:
        """Whether a query is between batches and not initializing; one that has ended counts as settled."""
        try:
            writer = self._prepared[name].writer
            settled = between_batches(writer.checkpoint) and not writer.another_is_due()
            return not query.isActive or (settled and not _starts(query))
        except (Py4JError, OSError):  # Spark itself is gone
            return True

    def _checkpoint(self, name: str) -> Path:
        return self._prepared[name].writer.checkpoint

    def _planned(self) -> object:
        """Changes whenever a batch starts."""
        return [last_batch(self._checkpoint(name)) for name in self._prepared]

    def _moves(self) -> object:
        """Changes whenever a batch starts, except batches that only check which timers are due."""
        checkpoints = [self._checkpoint(name) for name in self._prepared]
        return [None if only_timers(checkpoint) else last_batch(checkpoint) for checkpoint in checkpoints]

    def _why_rows_wait(self, fed: Mapping[str, int]) -> str:
        """Why the pipeline is not drained yet; ``fed`` is the newest table of each source when the wait began."""
        more = [source for source, newest in self._fed().items() if newest > fed[source]]
        waits = "rows still wait: give more time or more processors"
        comes = f"{', '.join(more)} is still fed: stop feeding before you drain, or give more time or more processors"
        return "; ".join(self._recovery.lines(time.monotonic())) or (comes if more else waits)

    def _fed(self) -> dict[str, int]:
        """The number of the newest table of each source."""
        edges = {source: FolderEdge(self.layout.edge(source)) for source in self.graph.sources}
        return {source: max(edge.numbers(), default=-1) for source, edge in edges.items()}

    def _wait(
        self, done: Callable[[], bool], mark: Callable[[], object], timeout_s: float, otherwise: Callable[[], str]
    ) -> None:
        """Poll until ``done`` has held for ``_STABLE_S`` with ``mark`` unchanged; ``StillWaiting`` at the deadline."""
        until, since, seen = time.monotonic() + timeout_s, None, None
        while True:
            if not self._stopping:
                self._check_drains()
            now, count = time.monotonic(), mark()
            if not done() or count != seen:
                since, seen = None, count
            elif since is None:
                since = now
            elif now - since >= _STABLE_S:
                return
            if now > until:
                raise StillWaiting(f"waited {timeout_s:g} s: {otherwise()}")
            time.sleep(0.05)

    def _check_drains(self) -> None:
        self.check()
        for problem in self.stopped.values():
            raise problem

    def _watch(self) -> None:
        """Watcher thread: restart failed queries, delete data that every reader has committed, keep fatal errors."""
        cleaned = time.monotonic()
        while not self._ends_before_the_next_look() and self.problem is None:
            try:
                self._lock.check()
                for name in self._prepared:
                    self._mind(name, time.monotonic())
                if time.monotonic() - cleaned >= _CLEAN_EVERY_S:
                    cleaned = time.monotonic()
                    # an unreadable file fails the operator that reads it; cleaning must not end the pipeline
                    with contextlib.suppress(SluicegateError, OSError, ValueError, KeyError):
                        self._clean()
            except SluicegateError as problem:
                self.problem = problem
                for planner in (planner for one in self._prepared.values() for planner in one.planners):
                    planner.paused = True
            except (Py4JError, OSError):
                self.problem = None if self._stopping else spark_is_gone(self.spark)
            except Exception as problem:
                self.problem = SluicegateError(
                    f"Spark or the disk failed ({type(problem).__name__}: {problem}): start again in the same folder"
                )

    def _ends_before_the_next_look(self) -> bool:
        """Sleep until the next poll, or until a query has ended after a failed batch; whether the runtime has ended."""
        if self._trouble.wait(_LOOK_EVERY_S):
            self._trouble.clear()
            until = time.monotonic() + _ENDS_WITHIN_S
            with contextlib.suppress(Py4JError, OSError):  # the poll itself reports that Spark is gone
                while not self._one_has_ended() and time.monotonic() < until:
                    if self._ended.wait(0.02):
                        break
        return self._ended.is_set()

    def _one_has_ended(self) -> bool:
        return any(not query.isActive for name, query in list(self._queries.items()) if name not in self._down)

    def _mind(self, name: str, now_s: float) -> None:
        """Poll one operator: note failure or recovery, restart it when due, begin planned changes of key groups."""
        known = self._recovery.failing.get(name)
        if self._stopping or (known is not None and known.stopped) or name in self._regrouping.moving:
            return
        query = self._queries[name]
        if name in self._down:
            if self._recovery.is_due(name, now_s):
                self._start_again(name)
        elif not query.isActive:
            gone = spark_is_gone(self.spark)
            if gone is not None:
                raise gone
            self._down.add(name)
            problem = query.exception()
            failure = ENDED if problem is None else failure_of(problem, self.layout.folder)
            if self._regrouping.undo(name, failure.why):
                self._start_again(name)
            else:
                self._failed(name, failure)
                if self._recovery.is_due(name, time.monotonic()):
                    self._start_again(name)
        elif known is not None and self._works_again(name, query, known, now_s):
            self._recovery.succeeded(name, now_s)
        elif known is None:
            groups = self._prepared[name].writer.groups
            if groups is not None:
                self._hot_keys[name].look(groups.told_s)
            self._regrouping.mind(name)
            self._regrouping.begin(name, self.plan().of(name).key_groups)

    def _failed(self, name: str, failure: Failure) -> None:
        """Note the failure of the first uncommitted batch, which Spark reruns with the same rows."""
        done = last_committed(self._checkpoint(name))
        batch = 0 if done is None else done + 1
        self._recovery.failed(name, batch, failure, time.monotonic(), place_of(self._checkpoint(name), batch))

    def _start_again(self, name: str) -> None:
        try:
            self._regrouping.settle(name)
            self._prepared[name].writer.tidy()
            self._start(name)
        except BadInput as problem:
            self._failed(name, Failure(str(problem), Fault.CODE))
        except OSError as problem:
            self._failed(name, Failure(f"{type(problem).__name__}: {problem}", Fault.MACHINE))
        else:
            self._down.discard(name)

    def _works_again(self, name: str, query: StreamingQuery, known: Failing, now_s: float) -> bool:
        """Whether the failed batch is committed or, without one to finish, the query has run for a while."""
        checkpoint = self._checkpoint(name)
        done = last_committed(checkpoint)
        if done is not None and done >= known.batch:
            return True
        runs_s = now_s - (known.next_try_s or now_s)
        return runs_s >= _WORKS_AGAIN_S and between_batches(checkpoint) and not _starts(query)

    def _clean(self) -> None:
        done = {name: committed(one.writer.checkpoint) for name, one in self._prepared.items()}
        for stream in set(self.graph.streams) - set(self.graph.kept):
            taken = [done[name].get(stream, 0) for name in self.graph.readers(stream)]
            FolderEdge(self.layout.edge(stream)).clean(min(taken, default=0))
        self._retention.clean(done, time.time(), time.monotonic())

    def _start(self, name: str) -> None:
        self.graph = self.graph.with_key_groups({name: self._prepared[name].key_groups})
        self._queries[name] = start_query(self.spark, self._prepared[name], self._names[name])

    def _rests(self, name: str) -> bool:
        """Whether an operator is between two batches and stays so for ``_STABLE_S``."""
        before = last_batch(self._checkpoint(name))
        if not self._settled(name, self._queries[name]):
            time.sleep(0.05)
            return False
        time.sleep(_STABLE_S)
        return self._settled(name, self._queries[name]) and last_batch(self._checkpoint(name)) == before

    def _stop_alone(self, name: str) -> None:
        self._queries[name].stop()

    def _close(self) -> None:
        self._ended.set()
        self._trouble.set()
        if self._watcher.is_alive():
            self._watcher.join()
        self._recovery.close(time.monotonic())
        for one in self._prepared.values():
            if one.writer.foreign is not None:
                one.writer.foreign.close()
        self._progress.close()
        self._nodes.close()
        self._stop_queries()
        with contextlib.suppress(PySparkException, Py4JError, OSError):
            for planner in (planner for one in self._prepared.values() for planner in one.planners):
                forget(self.spark, planner)
        with contextlib.suppress(SluicegateError, OSError):
            self._lock.check()
            self.layout.hold.unlink(missing_ok=True)
        self._lock.close()

    def _stop_queries(self) -> None:
        """Stop all queries; those that hang in the user's code are given up, and may publish nothing any more."""
        until = time.monotonic() + _LETS_GO_WITHIN_S
        stopping = {
            name: threading.Thread(target=_stopped, args=(q,), daemon=True) for name, q in self._queries.items()
        }
        for thread in stopping.values():
            thread.start()
        for name, thread in stopping.items():
            thread.join(max(until - time.monotonic(), 0.0))
            if thread.is_alive():
                self._prepared[name].writer.check_folder = partial(_refuse_late, name)
                self.restarts.append(f"{name}: its code does not end: given up; its batch runs again at the next start")
                LOG.warning("sluicegate: %s", self.restarts[-1])


def _stopped(query: StreamingQuery) -> None:
    with contextlib.suppress(PySparkException, Py4JError, OSError):  # Spark itself may be gone
        query.stop()


def _refuse_late(name: str) -> None:
    raise SluicegateError(f"operator {name!r} was stopped before this batch ended: nothing of it is published")


def _starts(query: StreamingQuery) -> bool:
    return query.isActive and "Initializing" in query.status["message"]
