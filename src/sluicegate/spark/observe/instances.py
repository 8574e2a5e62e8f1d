"""The instances of an operator: with how many it really runs, and how fast each of them is.

The plan is read when a batch is planned, so a new number of tasks is in force as soon as a later batch was planned;
for an idle operator at once.

Task i of a batch is instance i: if places are planned, it runs on the same host each time. Single batches vary too
much, so speeds are smoothed over the last few.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sluicegate.runlog.batch_log import BatchRecord

OVERDUE_S = 30.0
"""Seconds after which a plan change that no batch has started with no longer blocks the loop."""


@dataclass(slots=True)
class InForce:
    """The k requested for one operator and since when, the last batch planned by then, and the last that ended."""

    asked: int | None = None
    since_s: float = 0.0
    at_batch: int = -1
    ran: int | None = None
    ended: int = -1
    newest: int = -1

    @property
    def under_way(self) -> bool:
        """Whether a batch was planned that has not ended."""
        return self.newest > self.ended

    def look(
        self, planned: int, records: Sequence[BatchRecord], started: int | None, waiting: bool, now_s: float
    ) -> tuple[int, float | None]:
        """The k in force, and for how many seconds another has been pending (``None``: none is).

        ``started`` is the number of the last batch that was planned, ``waiting`` whether rows wait for the next.

        >>> from sluicegate.domain.births import Births
        >>> done = BatchRecord(4, 0.0, 1.0, 1.0, 9, 9, 2, None, Births())
        >>> seen = InForce()
        >>> seen.look(2, [done], 4, True, 0.0), seen.look(5, [], 4, True, 2.0), seen.look(5, [], 4, True, 4.0)
        ((2, None), (2, 0.0), (2, 2.0))
        >>> seen.look(5, [], 5, True, 6.0), InForce().look(3, [], None, False, 0.0)
        ((5, None), (3, None))
        """
        newest = self.newest = -1 if started is None else started
        if records:
            self.ran, self.ended = records[-1].processors, records[-1].batch
        if planned != self.asked:
            self.asked, self.since_s, self.at_batch = planned, now_s, newest
        idle = not waiting and newest <= self.ended
        if self.ran is None or self.ran == planned or newest > self.at_batch or idle:
            return planned, None
        return self.ran, now_s - self.since_s


_WEIGHT = 0.3
_SAMPLES = 3
"""Samples needed before the speeds are used."""
_LEAST_S = 0.05
"""Shorter tasks are ignored: their time is all start-up."""


@dataclass(slots=True)
class InstanceSpeeds:
    """Smoothed rows per second of each instance; reset when their number or a planned place changes."""

    per_s: tuple[float, ...] = ()
    at: tuple[str, ...] = ()
    samples: int = 0
    behind: tuple[float, ...] = ()

    def take(self, record: BatchRecord) -> None:
        """
        >>> from sluicegate.domain.births import Births
        >>> seen = InstanceSpeeds()
        >>> for batch in range(3):
        ...     tasks = {"task_s": (1.0, 2.0), "task_rows": (100, 100)}
        ...     seen.take(BatchRecord(batch, 0.0, 1.0, 1.0, 200, 200, 2, None, Births(), **tasks))
        >>> seen.told(2), seen.told(3)
        ((100.0, 50.0), ())
        >>> moved = {"task_at": ("a", "b"), "task_s": (1.0, 1.0), "task_rows": (100, 100)}
        >>> seen.take(BatchRecord(3, 0.0, 1.0, 1.0, 200, 200, 2, None, Births(), **moved))
        >>> seen.told(2), seen.per_s
        ((), (100.0, 100.0))
        """
        if record.cold or len(record.task_rows) != record.processors or min(record.task_s, default=0.0) < _LEAST_S:
            return
        fresh = tuple(rows / took for rows, took in zip(record.task_rows, record.task_s, strict=True))
        self.behind = _left(record.task_rows, record.task_s)
        if (
            len(fresh) != len(self.per_s) or record.task_at != self.at
        ):  # else a moved instance keeps its old host's speed
            self.per_s, self.at, self.samples = fresh, record.task_at, 1
            return
        self.per_s = tuple(old + _WEIGHT * (new - old) for old, new in zip(self.per_s, fresh, strict=True))
        self.samples += 1

    def told(self, running: int) -> tuple[float, ...]:
        """The speeds of ``running`` instances; empty until there are enough samples."""
        return self.per_s if self.samples >= _SAMPLES and len(self.per_s) == running else ()

    def left(self, running: int) -> tuple[float, ...]:
        """Rows of each instance that were unfinished when all others were done, in the last sampled batch."""
        return self.behind if self.told(running) else ()


def _left(rows: Sequence[int], took_s: Sequence[float]) -> tuple[float, ...]:
    """
    >>> _left((100, 100, 100), (1.0, 1.0, 2.0))
    (0.0, 0.0, 50.0)
    """
    took_s = tuple(took_s)
    if len(took_s) < 2:
        return (0.0,) * len(took_s)
    others_s = [max(took_s[:i] + took_s[i + 1 :]) for i in range(len(took_s))]
    return tuple(n * max(took - other, 0.0) / took for n, took, other in zip(rows, took_s, others_s, strict=True))
