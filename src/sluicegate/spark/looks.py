"""Spaces a controller's ticks evenly, detects steps of the wall clock between them, and waits while the disk fails.

The monotonic clock measures time; the wall clock only dates things, and may be set backwards or forwards at any moment.
"""

from __future__ import annotations

import contextlib
import errno
import sys
import time
from collections.abc import Callable
from typing import Protocol

_STEP_S = 5.0
"""If wall clock and monotonic clock diverge by more than this between two ticks, the wall clock was set, not slewed. At
half, a late tick counts as a step; at double, rates are computed over time that never passed."""
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EACCES, errno.ESTALE)
"""A disk that is full, fails, is read-only for a while, or was closed to its owner by mistake."""


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


class Ticks(Protocol):
    """A controller: every step observes, decides and writes."""

    def step(self, now_s: float) -> object: ...


def tick_until(
    ended: Callable[[], bool], every_s: float, made: Callable[[], Ticks], before: Callable[[], object] = lambda: None
) -> None:
    """Tick until ``ended``, with another controller after the clock was set; a disk that takes nothing is waited out.

    ``before`` is called before every tick.

    Ending instead would cost what was learned, and a controller that dies at every start is given up.
    """
    looks, controller, stuck = Looks(every_s), None, False
    while not ended():
        try:
            before()
            controller = controller or made()
            controller.step(time.time())
            stuck = False
        except OSError as problem:
            if problem.errno not in _NO_ROOM:
                raise
            if not stuck:
                _say(f"the record cannot be written ({problem.strerror}): the plan in force stays until it can")
            stuck = True
        if step_s := looks.wait():
            _say(f"the clock was set by {step_s:+.0f} s: earlier measurements are discarded")
            controller = None


def _say(text: str) -> None:
    with contextlib.suppress(OSError):  # its log is on the same disk
        sys.stderr.write(f"sluicegate: {text}\n")
        sys.stderr.flush()
