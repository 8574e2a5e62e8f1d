"""Waiting for something outside this process, but not for ever."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(done: Callable[[], bool], patience_s: float, poll_s: float) -> bool:
    """Look until ``done``, or until patience ends; whether it was done.

    >>> wait_until(lambda: True, 0.0, 1.0), wait_until(lambda: False, 0.0, 1.0)
    (True, False)
    """
    until = time.monotonic() + patience_s
    while not done():
        if time.monotonic() >= until:
            return False
        time.sleep(poll_s)
    return True
