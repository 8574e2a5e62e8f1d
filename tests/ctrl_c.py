"""For programs that a test sends Ctrl-C."""

from __future__ import annotations

import signal


def hears_ctrl_c() -> None:
    """As ``preexec_fn``: a shell lets what it starts in the background ignore Ctrl-C, and the tests may be started so."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
