"""Keeps a controller beside a running pipeline: one that dies is started again, and the pipeline never waits."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from types import TracebackType

from sluicegate.runlog.files import owner_only_file
from sluicegate.runlog.layout import Layout
from sluicegate.spark.controller import Control

_LOOK_EVERY_S = 1.0
_MOST_DEATHS = 20


class Supervisor:
    """Use it in a ``with`` block: the controller ends with it."""

    def __init__(self, layout: Layout, control: Control) -> None:
        self._layout, self._control = layout, control
        self._ended = threading.Event()
        self.deaths: list[int] = []
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

    def _start(self) -> subprocess.Popen[bytes]:
        # named here: asked by the controller itself, it may be gone already
        arguments = [str(self._layout.folder), *self._control.arguments(), f"--parent={os.getpid()}"]
        command = [sys.executable, "-m", "sluicegate.spark.controller", *arguments]
        with owner_only_file(self._layout.controller_log).open("ab") as log:
            # A group of its own: Ctrl-C ends the load, and the controller goes on until the last row is out.
            return subprocess.Popen(command, stdout=log, stderr=log, process_group=0)

    def _watch(self) -> None:
        while not self._ended.wait(_LOOK_EVERY_S):
            code = self.process.poll()
            if code is not None and len(self.deaths) < _MOST_DEATHS:
                self.deaths.append(code)
                self.process = self._start()
