"""Polls a condition outside this process, with a timeout."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(done: Callable[[], bool], patience_s: float, poll_s: float) -> bool:
    """Poll until ``done`` or until ``patience_s`` has passed; returns whether it was done.

    >>> wait_until(lambda: True, 0.0, 1.0), wait_until(lambda: False, 0.0, 1.0)
    (True, False)
    """
    until = time.monotonic() + patience_s
    while not done():
        if time.monotonic() >= until:
            return False
        time.sleep(poll_s)
    return True
