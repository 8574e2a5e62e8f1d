"""Writes each batch of an operator: its rows go to files, which one rename per edge then publishes.

Spark reruns a batch that it did not see finish, with the same number and the same input. If the manifest of that number
exists already, nothing is published again; the batch is still executed, or its state would not be committed. If an
operator has several outputs, the rows of all of them are written in one pass, and a commit record names all files
before any edge shows them, so that a crash between two edges cannot leave them inconsistent.
"""

from __future__ import annotations

import logging
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from urllib.parse import unquote

from pyspark.sql import DataFrame

from sluicegate.domain.births import Births
from sluicegate.errors import BadInput
from sluicegate.runlog.fault_point import fault_point
from sluicegate.runlog.plan_file import PlanFile
from sluicegate.spark.act.group_loads import GroupLoads
from sluicegate.spark.act.places import in_tasks
from sluicegate.spark.edges.edge import DurableEdge
from sluicegate.spark.edges.kept import exact_paths, schema_of
from sluicegate.spark.edges.manifest import DataFile, Manifest
from sluicegate.spark.edges.offsets import batch_range, last_batch, last_committed, place_of
from sluicegate.spark.edges.planner import EdgePlanner
from sluicegate.spark.kafka.records import send
from sluicegate.spark.pipeline.batch_files import listed, saved
from sluicegate.spark.pipeline.commit_records import CommitRecords
from sluicegate.spark.pipeline.elements import OUTPUT, Write
from sluicegate.spark.pipeline.event_time import QueryWatermark
from sluicegate.spark.pipeline.foreign import ForeignSource
from sluicegate.spark.pipeline.row_functions import DEAD_LETTERS, PLACE

LOG = logging.getLogger("sluicegate.pipeline")
_COLD = 5
"""Number of batches after a start that are marked cold: they include compilation and warm-up."""
_STEP_S = 1.0
"""A batch is marked cold if the wall clock was stepped by more than this while it ran: its times are wrong."""
_NULL = "__HIVE_DEFAULT_PARTITION__"
"""Spark's name for the folder of rows whose partition column is null or empty."""


@dataclass(frozen=True, slots=True)
class BatchNote:
    """Figures known while a batch runs; its total duration is known only after Spark has committed it."""

    rows: int
    rows_out: int
    processors: int
    entered_s: float | None
    published_s: float
    born: Births
    cold: bool
    task_rows: tuple[int, ...] = ()
    group_s: tuple[float, ...] = ()
    places: tuple[str, ...] = ()


@dataclass(slots=True)
class BatchWriter:
    """The function that Spark calls for every batch of one operator."""

    operator: str
    checkpoint: Path
    plan: PlanFile
    reads: Mapping[str, DurableEdge]
    writes: Mapping[str, DurableEdge]
    """The edge of each output, by name; a single output has the empty name."""
    planners: tuple[EdgePlanner, ...] = ()
    sinks: tuple[tuple[str, Write], ...] = ()
    loops: frozenset[str] = frozenset()
    """The outputs that feed a loop."""
    foreign: ForeignSource | None = None
    """Set if the operator reads a native Spark source."""
    groups: GroupLoads | None = None
    """Set if the operator is stateful."""
    passing: bool = False
    """Whether its output is deleted once its readers have taken it."""
    skips: bool = False
    """Whether rows that its function fails on go to its dead letters."""
    watermark: QueryWatermark | None = None
    """Set if the query has a watermark."""
    timed: frozenset[str] = frozenset()
    """The outputs whose rows have event time; their manifests carry the watermark."""
    another_after: int | None = None
    """The batch after which Spark runs one more, to release state that the watermark has passed."""
    without_rows: int | None = None
    """The batch that Spark added when it repartitioned the state, until its empty manifests are published."""
    notes: dict[int, BatchNote] = field(default_factory=dict)
    started: int = 0
    interrupted: int | None = None
    """The batch that was planned and not committed when the query was last started: it runs again."""
    hosts: tuple[str, ...] = ()
    """Preferred hosts of its tasks, overriding the plan's; if both are empty, Spark chooses."""
    held: bool = False
    """Set when the pipeline stops: edges admit nothing more by themselves, batches of native sources are refused."""
    disturbed_until_s: float = 0.0
    """Batches that begin before this time are marked cold: executors are starting, and their first tasks are slow."""
    check_folder: Callable[[], None] = field(default=lambda: None)
    """Raises if the path of the pipeline's folder leads elsewhere by now: nothing is published there."""
    trouble: threading.Event = field(default_factory=threading.Event)
    """Set when a batch fails, so that the runtime reacts before its next poll."""
    _last_s: float = field(default_factory=time.time)

    def __call__(self, batch: DataFrame, number: int) -> None:
        try:
            self._run(batch, number)
        except BaseException:
            self.trouble.set()
            raise

    def _run(self, batch: DataFrame, number: int) -> None:
        if self.held and not self.reads:
            raise InterruptedError(f"operator {self.operator!r} stops: batch {number} runs at the next start")
        self.started += 1
        if self.foreign is not None:
            self.foreign.began()
        taken = self._taken(number)
        k = self._processors()
        began_s, began = time.time(), time.monotonic()
        told = self._born(taken, number)
        planned = self.plan.read().of(self.operator)
        hosts = self.hosts or planned.hosts
        tasks = in_tasks(batch, k, hosts, self.groups, planned.groups)
        if self.skips:  # a local property: readable in the tasks of all jobs that this thread starts
            batch.sparkSession.sparkContext.setLocalProperty(PLACE, place_of(self.checkpoint, number))
        rows_out, born = self._write(tasks, number, told, (self._last_s + began_s) / 2)
        rows = self._rows_taken(taken, told, rows_out)
        now_s, self._last_s = time.time(), began_s
        weighed = sum(manifest.published_s * manifest.rows for manifest in taken)
        entered_s = weighed / rows if rows and taken else told.mean_s if told else None
        stepped = abs((now_s - began_s) - (time.monotonic() - began)) > _STEP_S
        cold = self.started <= _COLD or began_s < self.disturbed_until_s or stepped
        group_s = self.groups.told_s if self.groups is not None else ()
        self.notes[number] = BatchNote(
            rows, rows_out, k, entered_s, now_s, born, cold, self._task_rows(), group_s, tuple(islice(cycle(hosts), k))
        )
        if self.foreign is not None:
            self.foreign.ended(number, rows, now_s - began_s)

    def _processors(self) -> int:
        """The k that the tasks of this batch were cut for; the plan may have changed since."""
        cut = max((planner.processors for planner in self.planners), default=0)
        most = self.foreign.tasks if self.foreign else 0
        wanted = max(self.plan.read().of(self.operator).processors, 1)
        return cut or (min(wanted, most) if most else wanted)

    def _born(self, taken: list[Manifest], number: int) -> Births | None:
        """Arrival times of the rows of a batch, if known."""
        if self.reads:
            return Births.merged(manifest.born for manifest in taken if manifest.rows)
        return self.foreign.taken(number) if self.foreign is not None else None

    def _rows_taken(self, taken: list[Manifest], born: Births | None, rows_out: int) -> int:
        """Input rows of a batch; for a source that is neither an edge nor Kafka only the output rows are known."""
        if self.reads:
            return sum(manifest.rows for manifest in taken)
        return round(born.weight) if born is not None else rows_out

    def _task_rows(self) -> tuple[int, ...]:
        """The rows of each task, if they come from a single edge."""
        return self.planners[0].task_rows if len(self.planners) == 1 else ()

    def tidy(self) -> None:
        """Before the query starts: delete files of interrupted batches, except those a commit record names.

        Those are still to be published.
        """
        planned = last_batch(self.checkpoint)
        self.interrupted = None if planned == last_committed(self.checkpoint) else planned
        read = (self._records.read(number, self.writes) for number in self._records.numbers())
        records = [record for record in read if record is not None]
        needed = {Path(file.path).parts[1] for record in records for files in record.values() for file in files}
        shutil.rmtree(self._drafts, ignore_errors=True)
        for edge in self.writes.values():
            edge.sweep(needed)

    def _taken(self, number: int) -> list[Manifest]:
        return [
            self.reads[edge].need(n)
            for edge, (first, end) in batch_range(self.checkpoint, number).items()
            for n in range(first, end)
        ]

    def _write(self, batch: DataFrame, number: int, told: Births | None, guessed_s: float) -> tuple[int, Births]:
        """Publish the batch unless it is published already; returns its output rows and their births.

        Without ``told`` births (native Spark sources other than Kafka) rows count as born at ``guessed_s``, halfway
        between the start of this batch and that of the one before.
        """
        files = self._committed(number)
        if files is None:
            files = self._files(batch, number)
            self._call_sinks(batch, files, number)
            if len(self.writes) > 1:
                self._records.write(number, files)
        else:
            batch.write.format("noop").mode("overwrite").save()
        rows = sum(file.rows for output in files.values() for file in output)
        born = told if told is not None else Births.of([(guessed_s, float(rows))])
        watermark_ms = self._advance(number)
        fault_point("written")
        self.check_folder()
        if self.without_rows is not None:  # only now: if a batch fails earlier, the repartitioning can still be undone
            for edge in self.writes.values():
                edge.publish(self.without_rows, (), Births(), time.time())
            self.without_rows = None
        published: list[Manifest] = []
        for output, edge in self.writes.items():
            if published:
                fault_point("between-manifests")
            carried = self._carried(output, files[output], born)
            passed_ms = watermark_ms if output in self.timed else None
            published.append(edge.publish(number, files[output], carried, time.time(), watermark_ms=passed_ms))
        fault_point("published")
        if len(self.writes) > 1:
            self._records.drop_before(number)
        dead = sum(file.rows for file in files[DEAD_LETTERS]) if self.skips else 0
        if dead:
            LOG.warning(
                "sluicegate: operator %r skipped %d rows of batch %d: see %s",
                *(self.operator, dead, number, self.writes[DEAD_LETTERS].folder.name),
            )
        return sum(manifest.rows for manifest in published) - dead, born

    def another_is_due(self) -> bool:
        """Whether Spark, after its last committed batch, still runs one for state that the watermark has passed."""
        return self.another_after is not None and self.another_after == last_committed(self.checkpoint)

    def _advance(self, number: int) -> int | None:
        """Advance the query's watermark by those of the manifests read; returns that of the output rows."""
        if self.watermark is None:
            return None
        newest = {
            edge: self.reads[edge].manifest(end - 1) for edge, (_, end) in batch_range(self.checkpoint, number).items()
        }
        carried = {edge: m.watermark_ms for edge, m in newest.items() if m is not None and m.watermark_ms is not None}
        advanced = self.watermark.advance(number, carried)
        self.another_after = number if advanced.another else None
        return advanced.leaving_ms

    def _carried(self, output: str, files: tuple[DataFile, ...], born: Births) -> Births:
        """The births an output carries: all of them; on a loop scaled to its rows, or they would circulate forever."""
        rows = sum(file.rows for file in files)
        if output not in self.loops or born.weight <= rows:
            return born
        return Births.of((at_s, weight * rows / born.weight) for at_s, weight in born.points)

    def _committed(self, number: int) -> dict[str, tuple[DataFile, ...]] | None:
        """The files of a batch that was published or recorded before it was interrupted, else ``None``."""
        if len(self.writes) == 1:
            (output, edge), *_ = self.writes.items()
            manifest = edge.manifest(number)
            return None if manifest is None else {output: manifest.files}
        return self._records.read(number, self.writes)

    @property
    def _records(self) -> CommitRecords:
        return CommitRecords(self.operator, self.checkpoint)

    @property
    def _drafts(self) -> Path:
        return self.checkpoint.parent / "drafts"

    def _files(self, batch: DataFrame, number: int) -> dict[str, tuple[DataFile, ...]]:
        home = f"{number}-{uuid.uuid4().hex[:8]}"
        if len(self.writes) == 1 and "" in self.writes:
            edge = self.writes[""]
            if edge.topic is not None:
                return {"": send(batch, edge.topic)}
            draft = self._drafts / home
            sums = saved(batch, draft, self.passing)
            # renamed: a task of an executor that was lost and comes back knows the draft only, and cannot touch it here
            draft.rename(edge.folder / "data" / home)
            return {"": listed(edge, f"data/{home}", sums)}
        return self._split(batch, home)

    def _split(self, batch: DataFrame, home: str) -> dict[str, tuple[DataFile, ...]]:
        """Write all outputs in one pass, then rename each output's files to its own edge, on the same disk."""
        draft = self._drafts / home
        sums = saved(batch, draft, self.passing, by_output=True)
        found = {path.name.removeprefix(f"{OUTPUT}="): path for path in draft.iterdir() if path.is_dir()}
        unknown = sorted(set(found) - set(self.writes))
        if unknown:
            where = f"with no value in {OUTPUT!r}" if unknown[0] == _NULL else f"to {unquote(unknown[0])!r}"
            raise BadInput(f"operator {self.operator!r} sent rows {where}: it names {', '.join(self.writes)}")
        files: dict[str, tuple[DataFile, ...]] = {}
        for output, edge in self.writes.items():
            if output in found:
                found[output].rename(edge.folder / "data" / home)
            files[output] = listed(edge, f"data/{home}", sums, f"{OUTPUT}={output}/")
        draft.rmdir()
        return files

    def _call_sinks(self, batch: DataFrame, files: Mapping[str, tuple[DataFile, ...]], number: int) -> None:
        """Call ``write`` of the sinks: for rows, and without any if the batch was interrupted.

        It may have written other rows under that number before: of code that was changed since, or of a table that the
        code looks rows up in.
        """
        for output, write in self.sinks:
            edge = self.writes[output]
            paths = [str(edge.folder / file.path) for file in files[output] if file.rows]
            if paths or number == self.interrupted:
                # the columns of the edge: the files of an operator with dead letters have those of both outputs
                schema, spark = schema_of(edge), batch.sparkSession
                rows = exact_paths(spark).schema(schema).parquet(*paths) if paths else None
                write(spark.createDataFrame([], schema) if rows is None else rows, number)
