"""When the batches of an operator may start: on the long run no more often than its pace says.

A batch that was late for want of rows, by up to a pace, lets the next be as much earlier. If each counted from the one
before, a single slow batch would put an operator out of step with the one it reads from, and every row after it would
wait for that much longer, for ever.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(slots=True)
class Pace:
    """Shared by the readers of all the edges that an operator reads: a batch takes what each of them has.

    Before a batch Spark asks every reader once, one after the other; whoever is asked twice is asked for the next one.
    The first waits for all of them, and whether a batch may start is settled with its answer: one that the second
    started would leave out what the first one has, for a whole pace.
    """

    readers: list[Callable[[], bool]] = field(default_factory=list)
    """Whether rows wait at each of the edges."""
    opened: bool = False
    """Whether a batch may take rows now."""
    _counts_from_s: float = -math.inf
    """When the last batch began, or was due if it began late."""
    _asked: set[str] = field(default_factory=set)
    _begun: bool = False

    def ask(self, reader: str) -> bool:
        """Whether it is the first that is asked for this batch."""
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
