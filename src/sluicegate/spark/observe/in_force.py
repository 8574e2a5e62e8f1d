"""Tracks the number of tasks that an operator really runs with: a new k is in force once a batch was planned with it.

The plan is read when a batch is planned, so a change is in force as soon as a later batch was planned. For an idle
operator a change is in force at once.
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
