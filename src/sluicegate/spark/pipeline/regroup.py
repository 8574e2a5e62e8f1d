"""Changes the number of key groups of one operator while all others keep running.

The plan requests it. The operator is stopped between two batches, its state is repartitioned by Spark itself and
checked (``spark.repartition``), and its query is restarted; rows that arrive meanwhile wait on its edges. Spark adds
a batch without rows to the checkpoint for it: before the next batch is published the edges get an empty manifest of
that number. Until a batch after it is committed a small file records the stage of the change, so that a start after a
crash knows what to do:

    begun      the checkpoint may be half rewritten, or half restored: its copy is restored
    verified   the state is repartitioned and checked: continue from there

The copy is also restored if the query does not start, or fails before it has published anything. Before that the stage
is set back to "begun": otherwise a crash could publish an empty manifest for a batch of the restored checkpoint, which
has rows.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from sluicegate.domain.births import Births
from sluicegate.errors import SluicegateError, StillWaiting
from sluicegate.runlog.batch_log import append_line
from sluicegate.runlog.fault_point import fault_point
from sluicegate.runlog.files import read_if_there, write_whole
from sluicegate.runlog.layout import Layout
from sluicegate.runlog.plan_file import PlanFile
from sluicegate.spark.act.group_loads import GroupLoads
from sluicegate.spark.edges.folder import FolderEdge
from sluicegate.spark.edges.offsets import last_batch, last_committed, state_partitions
from sluicegate.spark.edges.seal import opened, sealed
from sluicegate.spark.edges.spoiled import file_spoiled
from sluicegate.spark.pipeline.commit_records import CommitRecords
from sluicegate.spark.pipeline.queries import Prepared
from sluicegate.spark.repartition import copy_of, put_back, repartition

BEGUN, VERIFIED = "begun", "verified"
_PATIENCE_S = 120.0
"""How long to wait for the running batch to end; after that the change is given up."""


@dataclass(frozen=True, slots=True)
class Regroup:
    """A change in progress: after ``batch`` the state goes from ``have`` key groups to ``want``."""

    stage: str
    batch: int
    have: int
    want: int

    @classmethod
    def read(cls, path: Path) -> Regroup | None:
        """The change recorded in a file; ``None`` if there is none."""
        try:
            text = read_if_there(path)
            if text is None:
                return None
            read, _ = opened(text)
            return cls(str(read["stage"]), int(read["batch"]), int(read["have"]), int(read["want"]))
        except (ValueError, KeyError, TypeError) as problem:
            told = str(problem) if type(problem) is ValueError else "is no change of key groups"
            raise file_spoiled(f"operator {path.parent.name!r}", path, told) from problem

    def write(self, path: Path) -> None:
        write_whole(path, sealed(json.dumps({slot: getattr(self, slot) for slot in Regroup.__slots__})))


def settle_regroup(layout: Layout, name: str, writes: Iterable[str]) -> None:
    """Before a query starts: finish or undo a change that a crash has interrupted; ``writes`` are its streams."""
    path, checkpoint = layout.regroup(name), layout.checkpoint(name)
    change = Regroup.read(path)
    if change is None:
        return
    copy = copy_of(checkpoint, change.batch)
    if change.stage == VERIFIED:
        for stream in writes:
            FolderEdge(layout.edge(stream)).publish(change.batch + 1, (), Births(), time.time())
    else:
        if copy.exists():
            CommitRecords(name, checkpoint).drop_after(change.batch)
        put_back(checkpoint, copy)  # without a copy too: a crash after it was put back leaves what it replaced
    _forget(checkpoint, path)


def resumes_from(layout: Layout, name: str) -> tuple[Path, int | None]:
    """The checkpoint that the next start continues from, and the batch that it will publish an empty manifest for."""
    checkpoint = layout.checkpoint(name)
    change = Regroup.read(layout.regroup(name))
    if change is None:
        return checkpoint, None
    if change.stage == VERIFIED:
        return checkpoint, change.batch + 1
    copy = copy_of(checkpoint, change.batch)
    return (copy if copy.exists() else checkpoint), None


def _forget(checkpoint: Path, path: Path) -> None:
    for copy in checkpoint.parent.glob(f"{checkpoint.name}.before-*"):
        shutil.rmtree(copy, ignore_errors=True)
    path.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class Hands:
    """Callbacks into the running pipeline: whether a query is between batches, how to stop and to start it."""

    settled: Callable[[str], bool]
    stop: Callable[[str], None]
    start: Callable[[str], None]
    leaving: Callable[[], bool]
    """Whether the whole pipeline is stopping: then nothing is started any more."""


@dataclass(slots=True)
class Regrouping:
    """Changes the key groups of operators to the planned number, each in a thread of its own."""

    spark: SparkSession
    layout: Layout
    prepared: dict[str, Prepared]
    hands: Hands
    moving: dict[str, threading.Thread] = field(default_factory=dict)
    _refused: dict[str, int] = field(default_factory=dict)
    """By operator the number that failed; it is not retried until another is requested."""

    def begin(self, name: str, wanted: int) -> bool:
        """Start a change if another number is requested; returns whether one is in progress."""
        if name in self.moving:
            return True
        writer = self.prepared[name].writer
        groups = writer.groups
        if groups is None or wanted in (0, groups.number) or self._refused.get(name) == wanted:
            return False
        if Regroup.read(self.layout.regroup(name)) is not None or last_batch(writer.checkpoint) is None:
            return False  # the last change is not over, or there is no state yet
        self._refused.pop(name, None)
        if writer.foreign is not None:
            self._refuse(name, groups.number, wanted, "it reads a stream of Spark's own")
            return False
        thread = threading.Thread(target=self._move, args=(name, groups.number, wanted), name="sluicegate-regroup")
        self.moving[name] = thread
        thread.start()
        return True

    def mind(self, name: str) -> None:
        """Delete the copy of the checkpoint once a batch with the new groups is committed."""
        writer, path = self.prepared[name].writer, self.layout.regroup(name)
        if name in self.moving or not path.exists():
            return
        change, done = Regroup.read(path), last_committed(writer.checkpoint)
        if change is not None and done is not None and done > change.batch + 1:
            _forget(writer.checkpoint, path)

    def undo(self, name: str, why: str) -> bool:
        """Restore the old checkpoint if the query failed before it published anything; returns whether it did.

        Not with a sink that writes: it may have been called with the number of a batch that would get other rows.
        """
        writer, path = self.prepared[name].writer, self.layout.regroup(name)
        change = Regroup.read(path)
        if change is None or change.stage != VERIFIED or name in self.moving or writer.sinks:
            return False
        if any(edge.has(change.batch + 1) for edge in writer.writes.values()):
            return False
        self._put_back(name, change)
        self._refuse(name, change.have, change.want, why)
        return True

    def settle(self, name: str) -> None:
        """Before a query starts again: restore its checkpoint if that failed when the change was given up."""
        change = Regroup.read(self.layout.regroup(name))
        if change is not None and change.stage == BEGUN:
            settle_regroup(self.layout, name, ())

    def join(self, timeout_s: float) -> None:
        """Wait until no change is in progress, for ``timeout_s`` at most."""
        until = time.monotonic() + timeout_s
        for thread in list(self.moving.values()):
            thread.join(max(until - time.monotonic(), 0.0))

    def _move(self, name: str, have: int, want: int) -> None:
        one = self.prepared[name]
        began_s = time.monotonic()
        try:
            for planner in one.planners:
                planner.paused = True
            self._wait_settled(name)
            self.hands.stop(name)
            self._repartition(name, have, want)
            if not self.hands.leaving():
                self._start(name)
        except StillWaiting as problem:
            self._refuse(name, have, want, str(problem))
        except (SluicegateError, PySparkException, Py4JError, OSError) as problem:
            self._refuse(name, have, want, str(problem).splitlines()[0][:300])
            self._start_as_before(name)
        else:
            pause_s = time.monotonic() - began_s
            self._say(f"key groups of {name} {have} -> {want}: {name} stood still for {pause_s:.1f} s", pause_s)
        finally:
            for planner in one.planners:
                planner.paused = False
            del self.moving[name]

    def _wait_settled(self, name: str) -> None:
        until = time.monotonic() + _PATIENCE_S
        while not self.hands.settled(name):
            if self.hands.leaving() or time.monotonic() > until:
                raise StillWaiting("a batch did not end in time" if time.monotonic() > until else "the pipeline stops")

    def _repartition(self, name: str, have: int, want: int) -> None:
        """Repartition the state and check it; if anything fails the checkpoint is unchanged."""
        writer, path = self.prepared[name].writer, self.layout.regroup(name)
        batch = last_committed(writer.checkpoint)
        if batch is None or state_partitions(writer.checkpoint) == want:
            raise SluicegateError("there is nothing to repartition")
        Regroup(BEGUN, batch, have, want).write(path)
        fault_point("regroup-begun")
        self.spark.sparkContext.setLocalProperty("spark.scheduler.pool", name)
        try:
            repartition(self.spark, writer.checkpoint, want)
        except BaseException:
            if not copy_of(writer.checkpoint, batch).exists():  # else the checkpoint is not restored yet
                path.unlink(missing_ok=True)
            raise
        fault_point("regroup-rewritten")
        Regroup(VERIFIED, batch, have, want).write(path)
        fault_point("regroup-verified")
        writer.groups, writer.without_rows = GroupLoads(want), batch + 1

    def _start(self, name: str) -> None:
        try:
            self.hands.start(name)
        except (SluicegateError, PySparkException, Py4JError):
            change = Regroup.read(self.layout.regroup(name))
            if change is not None:
                self._put_back(name, change)
            raise

    def _put_back(self, name: str, change: Regroup) -> None:
        writer, path = self.prepared[name].writer, self.layout.regroup(name)
        replace(change, stage=BEGUN).write(path)
        # before the checkpoint: if restoring it fails, ``settle`` does it again before the next start
        writer.groups, writer.without_rows = GroupLoads(change.have), None
        CommitRecords(name, writer.checkpoint).drop_after(change.batch)
        put_back(writer.checkpoint, copy_of(writer.checkpoint, change.batch))
        fault_point("regroup-put-back")
        path.unlink(missing_ok=True)

    def _start_as_before(self, name: str) -> None:
        # if it does not start either, the watcher finds it ended and retries it
        with contextlib.suppress(SluicegateError, PySparkException, Py4JError, OSError):
            if not self.hands.leaving():
                self.settle(name)
                self.hands.start(name)

    def _refuse(self, name: str, have: int, want: int, why: str) -> None:
        self._refused[name] = want
        self._say(f"key groups of {name} stay at {have}, {want} were asked for: {why}")

    def _say(self, what: str, pause_s: float | None = None) -> None:
        plan = PlanFile(self.layout.plan).read()
        line: dict[str, Any] = {"at_s": round(time.time(), 3), "what": what, "decision": plan.decision}
        if pause_s is not None:
            line["pause_s"] = round(pause_s, 3)
        with contextlib.suppress(OSError):  # a full disk may be what failed; the change itself is on disk
            append_line(self.layout.fleet, json.dumps(line))
