"""For programs that a test sends Ctrl-C."""

from __future__ import annotations

import signal


def hears_ctrl_c() -> None:
    """As ``preexec_fn``: a shell lets what it starts in the background ignore Ctrl-C, maybe the tests themselves."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
