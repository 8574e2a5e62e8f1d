"""Native Spark sources of an operator: limits what their batches read, and measures how far behind they are.

``sluicegate.ReadLimits`` in our jar applies pace, row limit and back-pressure of the plan to Spark. For Kafka, the
broker is polled as well, twice a second: the topics' end offsets minus the offsets that batches have taken give lag and
arrivals, also while a batch runs; offsets over time give the arrival times of a batch's rows.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from py4j.java_gateway import JavaPackage
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from sluicegate.domain.births import Births
from sluicegate.runlog.batch_log import append_line
from sluicegate.runlog.plan_file import OperatorPlan, PlanFile
from sluicegate.spark.edges.backlog import Backlog
from sluicegate.spark.edges.offsets import last_batch
from sluicegate.spark.kafka.curve import OffsetCurve
from sluicegate.spark.kafka.offsets import BrokerOffsets, behind, planned, taken_by, told

_EVERY_S = 0.5
_ANSWER_S = 5.0
_HELD_S = 5.0
"""Deadline for the source to finish a request for offsets when it is held; a broker that is down does not answer."""
_BATCH_S = 10.0
"""Row cap of a batch in seconds of work, at the speed of the last full batch: a stop may have to wait this long."""
_FIRST_ROWS = 2_000
"""Row cap of the first batch, before any speed is known. At double, a stop waits longer for a slow operator."""
_LEAST_ROWS = 100
_AGES_S = tuple(0.5 * 2.0**i for i in reversed(range(18)))
"""Ages, 18 hours to 0.5 s, at which the broker's time index is queried to date the backlog from before the start."""


@dataclass(slots=True)
class ForeignSource:
    """One native source, used by the operator's writer; a thread of its own polls plan and broker until ``close``."""

    operator: str
    checkpoint: Path
    plan: PlanFile
    log: Path
    ahead: tuple[Backlog, ...] = ()
    spreads: bool = False
    """Whether its rows are shuffled before they are written: topic partitions then do not bound its tasks."""
    tasks: int = 0
    """Number of tasks that have rows; 0: not bounded."""
    rows: int = 0
    """Rows that its batches read since the start."""
    held: bool = False
    kafka: bool = False
    _last: int = -1
    _query: Any = None
    _limits: Any = None
    _offsets: Any = None
    _curve: OffsetCurve = field(default_factory=OffsetCurve)
    _began_s: float = 0.0
    _cap: float = _FIRST_ROWS
    _in_force: tuple[float, int] | None = None
    _crowded: bool = False
    _turn: threading.Lock = field(default_factory=threading.Lock)
    """Serialises hold and release."""
    _dating: threading.Lock = field(default_factory=threading.Lock)
    _ended: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def attach(self, spark: SparkSession, query: StreamingQuery) -> None:
        """Control a query that has just started; a restarted query is held again if the one before was."""
        jvm: Any = spark._jvm
        if isinstance(jvm.sluicegate.ReadLimits, JavaPackage):
            return  # the session lacks our jar: its reads cannot be limited
        self._limits, self._offsets = jvm.sluicegate.ReadLimits, jvm.sluicegate.KafkaOffsets
        self._let_go()
        self._query = query._jsq.streamingQuery()
        if self.held:
            self.hold()
        self._in_force, self._crowded = None, False
        self._bring(self.plan.read().of(self.operator))
        if self._thread is None:
            self._thread = threading.Thread(target=self._follow, name=f"sluicegate-{self.operator}", daemon=True)
            self._thread.start()

    def hold(self) -> None:
        """Stop the source: no more rows are read."""
        with self._turn, contextlib.suppress(Py4JError):
            self.held = True
            if self._query is not None:
                self._limits.hold(self._query, int(_HELD_S * 1e3))

    def began(self) -> None:
        """Note the start of a batch; the next one may start only after the pace."""
        self._began_s = time.time()
        self._in_force = None
        self._bring(self.plan.read().of(self.operator))

    def ended(self, batch: int, rows: int, took_s: float) -> None:
        """Count a batch, and set the row cap by its speed if it took at least half of the cap.

        The duration of a smaller batch shows its fixed cost, not its speed.
        """
        if batch > self._last:  # a rerun batch is already counted
            self.rows, self._last = self.rows + rows, batch
        if rows >= 0.5 * self._cap:
            self._cap = max(_BATCH_S * rows / max(took_s, 0.05), _LEAST_ROWS)

    def taken(self, batch: int) -> Births | None:
        """Arrival times of the rows of a batch, by its Kafka offsets; ``None`` without any."""
        ranges = taken_by(self.checkpoint, batch)
        if not ranges:
            return None
        with contextlib.suppress(Py4JError, ValueError):
            self._date_what_waited()
        return self._curve.births(ranges, self._began_s or time.time())

    def close(self) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join(timeout=1.0)
        self._let_go()

    def _let_go(self) -> None:
        """Close the client that polled the broker for the previous run of the query."""
        if self._query is not None:
            with contextlib.suppress(Py4JError, OSError):
                self._offsets.close(self._query)

    def _bring(self, wanted: OperatorPlan) -> None:
        """Apply pace and row limit of the plan to Spark if they changed."""
        most = int(min(wanted.most_rows, self._cap))
        if self._query is None or self._in_force == (wanted.pace_s, most):
            return
        left_s = min(self._began_s + wanted.pace_s - time.time(), wanted.pace_s)  # capped: the clock may be set back
        with contextlib.suppress(Py4JError):  # failing to set a limit must not fail the batch
            self._limits.mostRows(self._query, most)
            self._limits.pause(self._query, max(int(left_s * 1e3), 0))
            self._in_force = (wanted.pace_s, most)

    def _follow(self) -> None:
        while not self._ended.wait(_EVERY_S):
            # Spark may be stopping, the broker may be down: retry at the next poll
            with contextlib.suppress(Py4JError, OSError, ValueError):
                self._look()

    def _look(self) -> None:
        wanted = self.plan.read().of(self.operator)
        with self._turn:
            if not self.held:
                self._bring(wanted)
                self._wait_for_readers(wanted)
        self.kafka = self.kafka or bool(self._offsets.reads(self._query))
        if self.kafka:
            self._sample()

    def _wait_for_readers(self, wanted: OperatorPlan) -> None:
        """Back-pressure: hold the source while readers of the operator's output are too far behind."""
        crowded = any(backlog.rows() > wanted.most_behind for backlog in self.ahead)
        if crowded and not self._crowded:
            self._limits.hold(self._query, 0)
        elif self._crowded and not crowded:
            self._limits.release(self._query)
        self._crowded = crowded

    def _sample(self) -> None:
        self._date_what_waited()
        now = self._ask(-1)
        at_s = time.time()
        self._curve.add(at_s, now.offsets)
        self.tasks = 0 if self.spreads else now.tasks
        batch = last_batch(self.checkpoint)
        taken = planned(self.checkpoint, -1 if batch is None else batch)
        if not taken:
            return  # the start offsets are known only with the first batch
        lag = behind(now.offsets, taken)
        document = {
            "at_s": round(at_s, 3),
            "rows": sum(now.offsets.values()),
            "behind": sum(lag.values()),
            "tasks": self.tasks,
            "partitions": lag,
        }
        append_line(self.log, json.dumps(document))

    def _date_what_waited(self) -> None:
        """Date the backlog from before the start; once, at the first sample or first batch, whichever is earlier."""
        with self._dating:
            now_s, ages_s = time.time(), () if self._curve.lines or self._query is None else _AGES_S
            for age_s in ages_s:
                self._curve.add(now_s - age_s, self._ask(int((now_s - age_s) * 1e3)).offsets)

    def _ask(self, at_ms: int) -> BrokerOffsets:
        return told(self._offsets.at(self._query, at_ms, int(_ANSWER_S * 1e3)))
