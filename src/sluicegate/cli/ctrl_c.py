"""Handles Ctrl-C and SIGTERM in a run: noticed at once, acted on where it is safe.

An exception raised by a signal may come while Python or its bridge to Java holds a lock, which is then never released.
So the first Ctrl-C only sets an event, which the run checks between its steps; a second one does not wait.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType

from rich.console import Console

_WHEN_OUT = "stopping once all fed rows are processed (Ctrl-C again: at once)"


class CtrlC:
    """``leave`` is set by the first Ctrl-C."""

    def __init__(self, out: Console | None, saying: str = _WHEN_OUT) -> None:
        self.leave, self._out, self._saying = threading.Event(), out, saying
        self._before = signal.getsignal(signal.SIGTERM)

    def listen(self) -> None:
        """Install the handlers; again after Spark has started, since Spark's own handler cancels what runs."""
        signal.signal(signal.SIGINT, self._heard)
        signal.signal(signal.SIGTERM, self._heard)

    def forget(self) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, self._before or signal.SIG_DFL)

    def _heard(self, number: int, frame: FrameType | None) -> None:
        if self.leave.is_set():
            raise KeyboardInterrupt
        self.leave.set()
        if self._out is not None:
            self._out.print(self._saying)
