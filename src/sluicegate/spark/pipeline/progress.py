"""Logs every finished batch: Spark's progress report merged with the batch's own notes.

Spark's Python listener walks every progress object through hundreds of calls into the JVM, and falls behind at a few
batches a second. Here a thread fetches the JSON text of the last few progresses, one call each, and only when a batch
has ended and is not logged yet.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql.streaming.query import StreamingQuery

from sluicegate.runlog.batch_log import BatchRecord, append_line
from sluicegate.spark.observe.task_times import TaskTimes, Work
from sluicegate.spark.pipeline.batch_writer import BatchNote, BatchWriter

_EVERY_S = 0.1
_METRICS_LAG_S = 0.5
"""How long to wait for task metrics, which reach Spark's store asynchronously."""


@dataclass(frozen=True, slots=True)
class Watched:
    """A query to watch: its writer with the notes, the log file, and the query as it runs now."""

    writer: BatchWriter
    log: Path
    query: Callable[[], StreamingQuery | None]


class ProgressLog:
    """Logs the batches of all queries of a pipeline, in their order."""

    def __init__(self, watched: Mapping[str, Watched], tasks: TaskTimes) -> None:
        self._watched, self._tasks = watched, tasks
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sluicegate-batch-log", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Log the batches that have ended, and stop."""
        self._ended.set()
        self._thread.join(timeout=10)

    def _run(self) -> None:
        while not self._ended.wait(_EVERY_S):
            self._look()
        self._look()

    def _look(self) -> None:
        for known in self._watched.values():
            if known.writer.notes:
                # Spark may be stopping, the disk may be full: the operators report that themselves
                with contextlib.suppress(Py4JError, OSError):
                    self._log(known)

    def _log(self, known: Watched) -> None:
        query = known.query()
        for progress in recent(query) if query is not None else ():
            batch = int(progress["batchId"])
            note = known.writer.notes.get(batch)
            if note is None:
                continue
            work = self._tasks.of_batch(str(progress["runId"]), batch)
            young = abs(time.time() - note.published_s) < _METRICS_LAG_S  # abs: the clock may be set back
            if work.total_s is None and young and not self._ended.is_set():
                return
            append_line(known.log, record_of(progress, note, work).to_json())
            for done in [number for number in known.writer.notes if number <= batch]:
                del known.writer.notes[done]


def recent(query: StreamingQuery) -> list[dict[str, Any]]:
    """The last few progresses of a query, oldest first."""
    return [json.loads(progress.json()) for progress in query._jsq.recentProgress()]


def record_of(progress: Mapping[str, Any], note: BatchNote, work: Work) -> BatchRecord:
    """Merge progress, note and task times; a batch begins when rows are admitted: waiting for offsets is left out."""
    spent = progress["durationMs"]
    waited_s = float(spent.get("latestOffset", 0)) / 1e3
    began_s = datetime.fromisoformat(str(progress["timestamp"])).timestamp()
    return BatchRecord(
        batch=int(progress["batchId"]),
        started_s=began_s + waited_s,
        published_s=note.published_s,
        duration_s=max(float(spent.get("triggerExecution", 0)) / 1e3 - waited_s, 1e-3),
        rows=note.rows,
        rows_out=note.rows_out,
        processors=note.processors,
        entered_s=note.entered_s,
        born=note.born,
        cold=note.cold,
        work_s=work.total_s,
        task_s=work.task_s,
        task_rows=note.task_rows if len(note.task_rows) == len(work.task_s) else (),
        group_s=note.group_s,
        task_on=work.task_on,
        task_at=note.places if len(note.places) == len(work.task_on) else (),
    )
