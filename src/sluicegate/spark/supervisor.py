"""Runs the controller process of a pipeline and restarts it when it dies; the pipeline never waits for it.

A controller that dies repeatedly before its first tick cannot start: that is an error, which ``check`` raises with the
last line of its log. The plan in force stays in force.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from types import TracebackType

from sluicegate.errors import SluicegateError
from sluicegate.runlog.files import owner_only_file
from sluicegate.runlog.layout import Layout
from sluicegate.spark.controller import Control

_LOOK_EVERY_S = 1.0
_MOST_STARTS = 3
"""After this many deaths in a row before the first tick, the controller counts as unable to start."""
_MOST_DEATHS = 20
"""After this many deaths in a row, each within a minute of its start, it is not restarted any more."""
_STAYED_S = 60.0
_MOST_TEXT = 300


class ControllerFailed(SluicegateError):
    """The controller of the pipeline cannot be kept running."""

    exit_code = 1


class Supervisor:
    """Starts and supervises the controller process; use it in a ``with`` block, whose end stops the controller."""

    def __init__(self, layout: Layout, control: Control) -> None:
        self._layout, self._control = layout, control
        self._ended = threading.Event()
        self.deaths: list[int] = []
        self.problem: ControllerFailed | None = None
        self._young = self._blind = 0
        self.process = self._start()
        self._watcher = threading.Thread(target=self._watch, name="sluicegate-supervisor", daemon=True)
        self._watcher.start()

    def __enter__(self) -> Supervisor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        self._ended.set()
        self._watcher.join()
        self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=5)
            return
        self.process.kill()
        self.process.wait()

    def wait_for_a_look(self, limit_s: float, leave: threading.Event) -> bool:
        """Wait for the controller's first tick, which is slow on a new machine, where code is compiled first."""
        until = time.monotonic() + limit_s
        while not self._looked() and self.problem is None and time.monotonic() < until:
            if leave.wait(0.1):
                break
        return self._looked()

    def check(self) -> None:
        """Raise the error if the controller cannot be kept running."""
        if self.problem is not None:
            raise self.problem

    def _start(self) -> subprocess.Popen[bytes]:
        self._started_s, self._known = time.monotonic(), self._ticks()
        # our pid is passed: by the time the controller could ask for its parent, we may have ended
        arguments = [str(self._layout.folder), *self._control.arguments(), f"--parent={os.getpid()}"]
        command = [sys.executable, "-m", "sluicegate.spark.controller", *arguments]
        with owner_only_file(self._layout.controller_log).open("ab") as log:
            # Own process group: after Ctrl-C the controller must keep running until the last row is out.
            return subprocess.Popen(command, stdout=log, stderr=log, process_group=0)

    def _watch(self) -> None:
        known = None
        while not self._ended.wait(_LOOK_EVERY_S):
            code = self.process.poll()
            if code is None:
                continue
            if self.process is not known:
                known = self.process
                self._died(code)
            if self.problem is not None:
                return
            with contextlib.suppress(OSError):  # its log cannot be opened now, or no process be had: at the next look
                self.process = self._start()

    def _died(self, code: int) -> None:
        self.deaths.append(code)
        self._young = self._young + 1 if time.monotonic() - self._started_s < _STAYED_S else 0
        self._blind = 0 if self._looked() else self._blind + 1
        if self._blind >= _MOST_STARTS:
            said = f"does not start ({self._blind} tries)"
        elif self._young >= _MOST_DEATHS:
            said = f"died {self._young} times, each time within a minute of its start"
        else:
            return
        self.problem = ControllerFailed(
            f"the controller {said}: {self._last_words(code)}; processors stay as they are; see "
            f"{self._layout.controller_log}"
        )

    def _looked(self) -> bool:
        """Whether this controller has logged a tick: by a change of the file, so that clocks do not matter."""
        return self._ticks() != self._known

    def _ticks(self) -> tuple[int, int] | None:
        try:
            known = self._layout.ticks.stat()
        except FileNotFoundError:
            return None
        return known.st_mtime_ns, known.st_size

    def _last_words(self, code: int) -> str:
        """The last line of its log, without the module name of our own error classes."""
        with contextlib.suppress(OSError):
            text = self._layout.controller_log.read_bytes()[-10_000:].decode("utf-8", errors="replace")
            lines = [line.strip() for line in text.splitlines() if line.strip()]
            if lines:
                return lines[-1].removeprefix("sluicegate.errors.")[:_MOST_TEXT]
        return f"it ended with {code} and printed nothing"
