"""A stream of Spark's own as the source of an operator: what its batches may take, and how far behind they are.

Pace, row limit and back-pressure of the plan are brought to Spark by ``sluicegate.ReadLimits`` in our jar. Of Kafka the
broker is asked as well, twice a second: where its topics are against the offsets that batches have taken gives lag and
arrivals, also before a batch has ended; offsets against time tell when the rows of a batch came in.
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
"""How long to wait for a source that is being asked while it is held; a broker that is down does not answer."""
_BATCH_S = 10.0
"""What a batch may take of a backlog, by the speed of the last full one: so long may stopping have to wait for it."""
_FIRST_ROWS = 2_000
"""What the first batch may take, whose speed nobody knows. At double, a slow operator keeps a stop waiting longer."""
_LEAST_ROWS = 100
_AGES_S = tuple(0.5 * 2.0**i for i in reversed(range(18)))
"""Of what waited before the start, 18 hours to half a second: the broker's time index says how much is how old."""


@dataclass(slots=True)
class ForeignSource:
    """Use from the operator's writer; a thread of its own follows plan and broker until ``close``."""

    operator: str
    checkpoint: Path
    plan: PlanFile
    log: Path
    ahead: tuple[Backlog, ...] = ()
    spreads: bool = False
    """Whether its rows are shuffled before they are written: then topics do not bound its tasks."""
    tasks: int = 0
    """How many tasks have rows; 0 where nothing bounds them."""
    rows: int = 0
    """What its batches took in since the start."""
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
    """A hold must not meet a release half way."""
    _dating: threading.Lock = field(default_factory=threading.Lock)
    _ended: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def attach(self, spark: SparkSession, query: StreamingQuery) -> None:
        """Take a query in hand that has just started; one that is started again begins as the last one was left."""
        jvm: Any = spark._jvm
        if isinstance(jvm.sluicegate.ReadLimits, JavaPackage):
            return  # a session without our classes: what it reads is not ours to limit
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
        """Let it take no more rows."""
        with self._turn, contextlib.suppress(Py4JError):
            self.held = True
            if self._query is not None:
                self._limits.hold(self._query, int(_HELD_S * 1e3))

    def began(self) -> None:
        """A batch begins: the next may not before the pace is over."""
        self._began_s = time.time()
        self._in_force = None
        self._bring(self.plan.read().of(self.operator))

    def ended(self, batch: int, rows: int, took_s: float) -> None:
        """A batch that took what it was allowed shows how fast it goes; a smaller one shows what a batch costs."""
        if batch > self._last:  # one that runs again has been counted
            self.rows, self._last = self.rows + rows, batch
        if rows >= 0.5 * self._cap:
            self._cap = max(_BATCH_S * rows / max(took_s, 0.05), _LEAST_ROWS)

    def taken(self, batch: int) -> Births | None:
        """When the rows of a batch came in, as far as its offsets tell."""
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
        """Of the client that asked the broker for the query as it ran so far."""
        if self._query is not None:
            with contextlib.suppress(Py4JError, OSError):
                self._offsets.close(self._query)

    def _bring(self, wanted: OperatorPlan) -> None:
        """What the plan says, to Spark, where it says something new."""
        most = int(min(wanted.most_rows, self._cap))
        if self._query is None or self._in_force == (wanted.pace_s, most):
            return
        left_s = min(self._began_s + wanted.pace_s - time.time(), wanted.pace_s)  # or the clock was set back
        with contextlib.suppress(Py4JError):  # a limit that cannot be set must not cost the batch
            self._limits.mostRows(self._query, most)
            self._limits.pause(self._query, max(int(left_s * 1e3), 0))
            self._in_force = (wanted.pace_s, most)

    def _follow(self) -> None:
        while not self._ended.wait(_EVERY_S):
            # Spark may be going down, the broker may be away: the next look is as good
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
        """While those who read what it writes are too far behind, it takes nothing more."""
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
            return  # where the query begins is settled with its first batch
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
        """Once, before the first sample or the first batch's end, whichever comes first."""
        with self._dating:
            now_s, ages_s = time.time(), () if self._curve.lines or self._query is None else _AGES_S
            for age_s in ages_s:
                self._curve.add(now_s - age_s, self._ask(int((now_s - age_s) * 1e3)).offsets)

    def _ask(self, at_ms: int) -> BrokerOffsets:
        return told(self._offsets.at(self._query, at_ms, int(_ANSWER_S * 1e3)))
