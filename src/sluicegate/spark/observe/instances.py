"""Measures the speed of each instance of an operator, from the sampled tasks of its batches.

Task i of a batch is instance i: if places are planned, it runs on the same host each time. Single batches vary too
much, so speeds are smoothed over the last few.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sluicegate.runlog.batch_log import BatchRecord

_WEIGHT = 0.3
_SAMPLES = 3
"""Samples needed before the speeds are used."""
_LEAST_S = 0.05
"""Shorter tasks are ignored: their time is all start-up."""


@dataclass(slots=True)
class InstanceSpeeds:
    """Smoothed rows per second of each instance; reset when the number of instances changes."""

    per_s: tuple[float, ...] = ()
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
        """
        if record.cold or len(record.task_rows) != record.processors or min(record.task_s, default=0.0) < _LEAST_S:
            return
        fresh = tuple(rows / took for rows, took in zip(record.task_rows, record.task_s, strict=True))
        self.behind = _left(record.task_rows, record.task_s)
        if len(fresh) != len(self.per_s):
            self.per_s, self.samples = fresh, 1
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
