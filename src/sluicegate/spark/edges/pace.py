"""Limits how often the batches of an operator start: in the long run at most once per pace.

If a batch starts late for lack of rows, by up to one pace, the next may start earlier by as much. If each were timed
from the one before, a single slow batch would shift an operator out of phase with the one it reads from, and every
later row would wait that much longer, forever.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(slots=True)
class Pace:
    """Shared by the readers of all edges of an operator, since a batch takes the rows of each of them.

    Before a batch Spark asks every reader once, one after the other; a reader that is asked again is asked for the
    next batch. The first one asked waits for rows on any edge, and decides whether a batch may start: if the second one
    could start it, the batch would leave out the rows of the first, for a whole pace.
    """

    readers: list[Callable[[], bool]] = field(default_factory=list)
    """One function per edge: whether rows wait there."""
    opened: bool = False
    """Whether a batch may take rows now."""
    _counts_from_s: float = -math.inf
    """When the last batch began, or was due if it began late; by the monotonic clock."""
    _asked: set[str] = field(default_factory=set)
    _begun: bool = False

    def ask(self, reader: str) -> bool:
        """Note that Spark asks ``reader``; returns whether it is the first one asked for this batch."""
        first = not self._asked or reader in self._asked
        if first:
            self._asked.clear()
            self.opened = self._begun = False
        self._asked.add(reader)
        return first

    def is_due(self, pace_s: float) -> bool:
        return time.monotonic() >= self._counts_from_s + pace_s

    def rows_wait(self) -> bool:
        return any(waits() for waits in self.readers)

    def begin(self, pace_s: float) -> None:
        if not self._begun:
            self._counts_from_s = max(self._counts_from_s + pace_s, time.monotonic() - pace_s)
            self._begun = True
