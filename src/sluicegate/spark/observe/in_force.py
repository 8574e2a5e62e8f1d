"""Which number of tasks an operator really runs with: what was asked for counts once a batch was cut for it.

The plan is read when a batch is planned. So a change is in force as soon as a batch was planned after it was seen; an
operator that has nothing to do has nothing to wait for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sluicegate.runlog.batch_log import BatchRecord

OVERDUE_S = 30.0
"""A batch that has not begun so long after the plan changed does not hold the loop up any longer."""


@dataclass(slots=True)
class InForce:
    """Of one operator: the k asked for and since when, the last batch planned then, and the last one that ended."""

    asked: int | None = None
    since_s: float = 0.0
    at_batch: int = -1
    ran: int | None = None
    ended: int = -1

    def look(
        self, planned: int, records: Sequence[BatchRecord], started: int | None, waiting: bool, now_s: float
    ) -> tuple[int, float | None]:
        """The k in force, and for how many seconds another has been asked for (``None``: it is in force).

        ``started`` is the number of the last batch that was planned, ``waiting`` whether rows wait for the next.

        >>> from sluicegate.domain.births import Births
        >>> done = BatchRecord(4, 0.0, 1.0, 1.0, 9, 9, 2, None, Births())
        >>> seen = InForce()
        >>> seen.look(2, [done], 4, True, 0.0), seen.look(5, [], 4, True, 2.0), seen.look(5, [], 4, True, 4.0)
        ((2, None), (2, 0.0), (2, 2.0))
        >>> seen.look(5, [], 5, True, 6.0), InForce().look(3, [], None, False, 0.0)
        ((5, None), (3, None))
        """
        newest = -1 if started is None else started
        if records:
            self.ran, self.ended = records[-1].processors, records[-1].batch
        if planned != self.asked:
            self.asked, self.since_s, self.at_batch = planned, now_s, newest
        idle = not waiting and newest <= self.ended
        if self.ran is None or self.ran == planned or newest > self.at_batch or idle:
            return planned, None
        return self.ran, now_s - self.since_s
