"""Starts the dashboard as a process of its own: it must neither slow the run down nor outlive it."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType

from sluicegate.errors import EnvironmentLacks

_ANNOUNCED = "dashboard at "


class Dashboard:
    """Use it in a ``with`` block: ``url`` answers from then on, and the process ends with the block or its parent."""

    def __init__(self, folder: Path, port: int = 0) -> None:
        # SIM115 asks for a with block, but what the process says is read after this call, and closed by `_close`
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115
        arguments = [str(folder), f"--port={port}", "--with-parent"]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "sluicegate.dashboard", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            text=True,
        )
        self.url = self._announced()

    @property
    def pid(self) -> int:
        return self._process.pid

    def __enter__(self) -> Dashboard:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        self._process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=5)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._close()

    def _announced(self) -> str:
        """The address, which the process prints once it answers."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if line.startswith(_ANNOUNCED):
            return line.removeprefix(_ANNOUNCED).strip()
        self._process.wait()
        self._complaints.seek(0)
        said = self._complaints.read().decode(errors="replace").strip().splitlines()
        self._close()
        raise EnvironmentLacks(f"the dashboard did not start: {said[-1] if said else 'it printed nothing'}")

    def _close(self) -> None:
        self._complaints.close()
        if self._process.stdout is not None:
            self._process.stdout.close()
