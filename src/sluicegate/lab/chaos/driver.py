"""Starts, kills and restarts a driver process, optionally with a standby, and asks it for its answer."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sluicegate.errors import SluicegateError
from sluicegate.lab.chaos.processes import below
from sluicegate.runlog.fault_point import VARIABLE
from sluicegate.runlog.process_birth import born
from sluicegate.spark.cluster.waiting import wait_until

_STARTS_WITHIN_S = 600.0
_ENDS_WITHIN_S = 60.0
_TRACES = ("Traceback (most recent call last)", "StackOverflowError", "\tat org.apache.")
_OURS = "sluicegate: "


class DriverEnded(SluicegateError):
    """A driver ended before its queries ran; the message is the last line it printed."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a driver ended: exit code, its ``sluicegate:`` lines on standard error, number of stack traces there."""

    code: int
    lines: tuple[str, ...]
    traces: int

    @property
    def word(self) -> str:
        return self.lines[-1].removeprefix(_OURS) if self.lines else f"nothing, exit code {self.code}"


@dataclass(slots=True)
class Driver:
    """The driver of one application. ``logs`` holds the standard error of its processes, ``points`` armed fault points.

    With ``waits`` the process prints ``ready`` once Spark has started and waits for a line, so that it can stand by.
    """

    command: tuple[str, ...]
    logs: Path
    points: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    waits: bool = False
    starts: int = 0
    ended: list[Ended] = field(default_factory=list)
    _process: subprocess.Popen[str] | None = None
    _next: subprocess.Popen[str] | None = None
    _known: dict[int, str] = field(default_factory=dict)
    """Start time by pid of all descendants that ``look`` has found; the start time tells a reused pid apart."""

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def runs(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it and wait until its queries run; ``DriverEnded`` with its last line if it ends before."""
        self.reap()
        self.starts += 1
        self.points.mkdir(parents=True, exist_ok=True)
        for armed in self.points.iterdir():
            armed.unlink()
        self._process, self._next = self._next or self._begun(), None
        if self.waits and self._line(_STARTS_WITHIN_S) == "ready":
            self._tell("go")
        if self._line(_STARTS_WITHIN_S) != "running":
            self.kill()
            raise DriverEnded(self.ended[-1].word)
        self.look()

    def stand_by(self) -> None:
        """Start Spark of a standby driver in the background, unless there is one already."""
        if self.waits and self._next is None:
            self._next = self._begun(1)

    def _begun(self, ahead: int = 0) -> subprocess.Popen[str]:
        with (self.logs / f"driver-{self.starts + ahead}.log").open("w") as log:
            return subprocess.Popen(
                [sys.executable, "-m", *self.command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, **self.environment, VARIABLE: str(self.points)},
                start_new_session=True,
            )

    def _tell(self, line: str) -> bool:
        """Write a line to its standard input; ``False`` if the pipe is closed."""
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except OSError:
            return False
        return True

    def answer(self, fed: Mapping[str, int], within_s: float) -> dict[str, Any] | None:
        """Make it drain and return its answer; ``None`` if it ended or gave none in time."""
        process = self._process
        assert process is not None
        if not self._tell(json.dumps(fed)):
            return None
        line = self._line(within_s)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_ENDS_WITHIN_S)
        found: dict[str, Any] | None = json.loads(line) if line.startswith("{") else None
        return found

    def look(self) -> None:
        """Record its descendants, so that ``left`` can find those that outlive it."""
        self._remember(self.pid)

    def _remember(self, pid: int) -> None:
        for process in below(pid):
            birth = born(process.pid)
            if birth is not None:
                self._known[process.pid] = birth

    def kill(self) -> None:
        """SIGKILL the driver only; the processes it started must end by themselves."""
        if self.runs:
            self.look()
            os.kill(self.pid, signal.SIGKILL)
        self.reap()

    def end(self) -> None:
        """Kill the driver and its standby."""
        self.kill()
        process, self._next = self._next, None
        if process is not None:
            self._remember(process.pid)
            process.kill()
            process.communicate()

    def reap(self) -> None:
        """Wait for the last process to end and record how it ended."""
        process, self._process = self._process, None
        if process is None:
            return
        code = process.wait(_ENDS_WITHIN_S)
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        text = (self.logs / f"driver-{self.starts}.log").read_text(errors="replace")
        said = tuple(line for line in text.splitlines() if line.startswith(_OURS))
        self.ended.append(Ended(code, said, sum(text.count(trace) for trace in _TRACES)))

    def left(self, within_s: float = 60.0) -> list[str]:
        """Command lines of processes that outlived their driver by ``within_s``; they are killed."""
        wait_until(lambda: not self._alive(), within_s, 0.5)
        found = []
        for pid in self._alive():
            with contextlib.suppress(OSError):
                found.append(Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
                os.kill(pid, signal.SIGKILL)
        return found

    def _alive(self) -> list[int]:
        return [pid for pid, birth in self._known.items() if born(pid) == birth]

    def _line(self, within_s: float) -> str:
        """The next line on its standard output; empty if it ended or the deadline passed."""
        process, until_s = self._process, time.monotonic() + within_s
        assert process is not None
        assert process.stdout is not None
        while time.monotonic() < until_s:
            if select.select([process.stdout], [], [], 0.5)[0]:
                return process.stdout.readline().strip()
        return ""
