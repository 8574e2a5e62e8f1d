"""Waits until a condition holds and stays so: between two batches a query looks idle for a moment."""

from __future__ import annotations

import time
from collections.abc import Callable

from sluicegate.errors import StillWaiting

STABLE_S = 0.6
"""How long a condition has to hold. Sources poll the hold file at least this often: then no batch starts any more."""


def wait_until_stable(
    done: Callable[[], bool],
    mark: Callable[[], object],
    timeout_s: float,
    otherwise: Callable[[], str],
    check: Callable[[], None] = lambda: None,
) -> None:
    """Poll until ``done`` has held for ``STABLE_S`` with ``mark`` unchanged; ``StillWaiting`` at the deadline.

    ``otherwise`` gives the reason at the deadline; ``check`` is called at every poll and may raise.
    """
    until, since, seen = time.monotonic() + timeout_s, None, None
    while True:
        check()
        now, count = time.monotonic(), mark()
        if not done() or count != seen:
            since, seen = None, count
        elif since is None:
            since = now
        elif now - since >= STABLE_S:
            return
        if now > until:
            raise StillWaiting(f"waited {timeout_s:g} s: {otherwise()}")
        time.sleep(0.05)
