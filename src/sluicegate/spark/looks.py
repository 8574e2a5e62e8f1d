"""When a controller looks next, and whether the machine's clock was set meanwhile."""

from __future__ import annotations

import time

_STEP_S = 5.0
"""A clock that went so much more or less than time did was set, not slewed: half would take a late look for a step, and
double would let rates be told for a time that never was."""


class Looks:
    """``every_s`` apart, by a clock that nobody sets."""

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._due_s = time.monotonic()
        self._apart_s = time.time() - self._due_s

    def wait(self) -> float:
        """Until the next look is due; how far the clock was set forth or back since the last one, 0 where it was not.

        Who is told of a step has to begin anew: what it remembers has times of another clock.
        """
        self._due_s = max(self._due_s + self._every_s, time.monotonic())
        time.sleep(max(self._due_s - time.monotonic(), 0.05))
        before_s, self._apart_s = self._apart_s, time.time() - time.monotonic()
        step_s = self._apart_s - before_s
        return step_s if abs(step_s) > _STEP_S else 0.0
