"""When the batches of an operator may start: on the long run no more often than its pace says.

A batch that was late for want of rows, by up to a pace, lets the next be as much earlier. If each counted from the one
before, a single slow batch would put an operator out of step with the one it reads from, and every row after it would
wait for that much longer, for ever.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field


@dataclass(slots=True)
class Pace:
    """Shared by the readers of all the edges that an operator reads: a batch takes what each of them has.

    Before a batch Spark asks every reader once, one after the other; whoever is asked twice is asked for the next one.
    """

    _counts_from_s: float = -math.inf
    """When the last batch began, or was due if it began late."""
    _asked: set[str] = field(default_factory=set)
    _begun: bool = False

    def ask(self, reader: str) -> None:
        if reader in self._asked:
            self._asked.clear()
            self._begun = False
        self._asked.add(reader)

    def is_due(self, pace_s: float) -> bool:
        """Whether a batch may start, or has already: then the other edges' rows go into it too."""
        return self._begun or time.monotonic() >= self._counts_from_s + pace_s

    def begin(self, pace_s: float) -> None:
        if not self._begun:
            self._counts_from_s = max(self._counts_from_s + pace_s, time.monotonic() - pace_s)
            self._begun = True
