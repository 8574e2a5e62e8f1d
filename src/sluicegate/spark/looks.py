"""Paces the controller's ticks on the monotonic clock, and detects steps of the wall clock."""

from __future__ import annotations

import time

_STEP_S = 5.0
"""If wall clock and monotonic clock diverge by more than this between two ticks, the wall clock was set, not slewed. At
half, a late tick counts as a step; at double, rates are computed over time that never passed."""


class Looks:
    """Ticks ``every_s`` apart on the monotonic clock."""

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._due_s = time.monotonic()
        self._apart_s = time.time() - self._due_s

    def wait(self) -> float:
        """Sleep until the next tick; return the wall clock step in seconds since the last call, 0 if there was none.

        After a step the caller must discard its state, because the times in it are of the old clock setting.
        """
        self._due_s = max(self._due_s + self._every_s, time.monotonic())
        time.sleep(max(self._due_s - time.monotonic(), 0.05))
        before_s, self._apart_s = self._apart_s, time.time() - time.monotonic()
        step_s = self._apart_s - before_s
        return step_s if abs(step_s) > _STEP_S else 0.0
