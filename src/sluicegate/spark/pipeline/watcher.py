"""Watches the queries of a running pipeline: restarts those that fail, begins planned changes, deletes read rows.

One thread polls all operators. An error that concerns the whole pipeline (Spark is gone, the folder belongs to another
pipeline by now) ends the watch and is kept as ``problem``.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from sluicegate.errors import BadInput, SluicegateError
from sluicegate.runlog.failures import Failing
from sluicegate.runlog.layout import Layout
from sluicegate.runlog.lock import FolderLock
from sluicegate.runlog.plan_file import PlanFile
from sluicegate.spark.edges.folder import FolderEdge
from sluicegate.spark.edges.offsets import between_batches, committed, last_committed, place_of
from sluicegate.spark.edges.spoiled import EdgeSpoiled
from sluicegate.spark.observe.hot_key import HotKeys
from sluicegate.spark.pipeline.failures import ENDED, Failure, Fault, failure_of
from sluicegate.spark.pipeline.queries import Prepared
from sluicegate.spark.pipeline.recovery import Recovery
from sluicegate.spark.pipeline.regroup import Regrouping
from sluicegate.spark.pipeline.retention import Retention
from sluicegate.spark.pipeline.running_queries import RunningQueries
from sluicegate.spark.session import spark_is_gone

LOOK_EVERY_S = 0.5
_ENDS_WITHIN_S = 1.0
"""How long to wait for Spark to end a query whose batch has failed; if it takes longer, the next poll finds it."""
_CLEAN_EVERY_S = 2.0
_WORKS_AGAIN_S = 5.0
"""A restarted query that has run for this long and has no batch to finish counts as recovered."""


@dataclass(slots=True)
class Watcher:
    """Polls the operators from ``start`` until ``close``."""

    spark: SparkSession
    layout: Layout
    lock: FolderLock
    plan: PlanFile
    prepared: Mapping[str, Prepared]
    queries: RunningQueries
    recovery: Recovery
    regrouping: Regrouping
    retention: Retention
    stopping: threading.Event
    """Set while the pipeline stops: then no query is restarted any more."""
    closed: threading.Event = field(default_factory=threading.Event)
    problem: SluicegateError | None = None
    """The error that ended the whole pipeline."""
    _down: set[str] = field(default_factory=set)
    """Operators whose query has ended and waits for its next retry."""
    _trouble: threading.Event = field(default_factory=threading.Event)
    """Set by the writer of a batch that fails, so that the next poll comes at once."""
    _hot_keys: dict[str, HotKeys] = field(default_factory=dict)
    _thread: threading.Thread | None = None

    def __post_init__(self) -> None:
        self._hot_keys = {
            name: HotKeys(
                one.stream,
                self.layout.hot_key(name),
                tuple(e for e in one.writer.reads.values() if isinstance(e, FolderEdge)),
            )
            for name, one in self.prepared.items()
            if one.writer.groups is not None
        }
        for one in self.prepared.values():
            one.writer.trouble = self._trouble

    def start(self, name: str) -> None:
        """Start to watch, in a thread called ``name``."""
        self._thread = threading.Thread(target=self._watch, name=name, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop to watch, once the poll that runs is over."""
        self.closed.set()
        self._trouble.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self) -> None:
        cleaned = time.monotonic()
        while not self._closes_before_the_next_look() and self.problem is None:
            try:
                self.lock.check()
                for name in self.prepared:
                    self._look_after(name, time.monotonic())
                if time.monotonic() - cleaned >= _CLEAN_EVERY_S:
                    cleaned = time.monotonic()
                    # an unreadable file fails the operator that reads it; cleaning must not end the pipeline
                    with contextlib.suppress(SluicegateError, OSError, ValueError, KeyError):
                        self._clean()
            except SluicegateError as problem:
                self.problem = problem
                for planner in (planner for one in self.prepared.values() for planner in one.planners):
                    planner.paused = True
            except (Py4JError, OSError):
                self.problem = None if self.stopping.is_set() else spark_is_gone(self.spark)
            except Exception as problem:
                self.problem = SluicegateError(
                    f"Spark or the disk failed ({type(problem).__name__}: {problem}): start again in the same folder"
                )

    def _closes_before_the_next_look(self) -> bool:
        """Sleep until the next poll, or until a query has ended after a failed batch; whether the watch is over."""
        if self._trouble.wait(LOOK_EVERY_S):
            self._trouble.clear()
            until = time.monotonic() + _ENDS_WITHIN_S
            with contextlib.suppress(Py4JError, OSError):  # the poll itself reports that Spark is gone
                while not self.queries.one_has_ended(self._down) and time.monotonic() < until:
                    if self.closed.wait(0.02):
                        break
        return self.closed.is_set()

    def _look_after(self, name: str, now_s: float) -> None:
        """Poll one operator: note failure or recovery, restart it when due, begin planned changes of key groups."""
        known = self.recovery.failing.get(name)
        if self.stopping.is_set() or (known is not None and known.stopped) or name in self.regrouping.moving:
            return
        query = self.queries[name]
        if name in self._down:
            if self.recovery.is_due(name, now_s):
                self._start_again(name)
        elif not query.isActive:
            gone = spark_is_gone(self.spark)
            if gone is not None:
                raise gone
            problem = query.exception()
            self._down.add(name)
            failure = ENDED if problem is None else failure_of(problem, self.layout.folder)
            if self.regrouping.undo(name, failure.why):
                self._start_again(name)
            else:
                self._failed(name, failure)
                if self.recovery.is_due(name, time.monotonic()):
                    self._start_again(name)
        elif known is not None and self._works_again(name, known, now_s):
            self.recovery.succeeded(name, now_s)
        elif known is None:
            groups = self.prepared[name].writer.groups
            if groups is not None:
                self._hot_keys[name].look(groups.told_s)
            self.regrouping.mind(name)
            self.regrouping.begin(name, self.plan.read().of(name).key_groups)

    def _failed(self, name: str, failure: Failure) -> None:
        """Note the failure of the first uncommitted batch, which Spark reruns with the same rows."""
        checkpoint = self.prepared[name].writer.checkpoint
        done = last_committed(checkpoint)
        batch = 0 if done is None else done + 1
        self.recovery.failed(name, batch, failure, time.monotonic(), place_of(checkpoint, batch))

    def _start_again(self, name: str) -> None:
        try:
            self.regrouping.settle(name)
            self.prepared[name].writer.tidy()
            self.queries.start(name)
        except BadInput as problem:
            fault = Fault.SPOILED if isinstance(problem, EdgeSpoiled) else Fault.CODE
            self._failed(name, Failure(str(problem), fault))
        except OSError as problem:
            self._failed(name, Failure(f"{type(problem).__name__}: {problem}", Fault.MACHINE))
        else:
            self._down.discard(name)

    def _works_again(self, name: str, known: Failing, now_s: float) -> bool:
        """Whether the failed batch is committed or, without one to finish, the query has run for a while."""
        checkpoint = self.prepared[name].writer.checkpoint
        done = last_committed(checkpoint)
        if done is not None and done >= known.batch:
            return True
        runs_s = now_s - (known.next_try_s or now_s)
        return runs_s >= _WORKS_AGAIN_S and between_batches(checkpoint) and not self.queries.initializes(name)

    def _clean(self) -> None:
        done = {name: committed(one.writer.checkpoint) for name, one in self.prepared.items()}
        self.retention.clean(done, time.time(), time.monotonic())
