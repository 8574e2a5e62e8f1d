"""Programs that a test sends Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sluicegate.spark.cluster.waiting import wait_until

SLUICEGATE = str(Path(sys.executable).parent / "sluicegate")


def hears_ctrl_c() -> None:
    """As ``preexec_fn``: a shell lets what it starts in the background ignore Ctrl-C, maybe the tests themselves."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def sluicegate_in(folder: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """The command, started in ``folder`` in a process group of its own, as a terminal would; it ends with the block."""
    process = subprocess.Popen(
        [SLUICEGATE, *words],
        cwd=folder,
        env={**os.environ, "SLUICEGATE_HOME": str(folder / "home"), "TMPDIR": str(folder), "NO_COLOR": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=hears_ctrl_c,
    )
    with process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def wait_in(process: subprocess.Popen[str], done: Callable[[], bool], limit_s: float = 900.0) -> None:
    """Wait until ``done``, which has to come true while the process runs."""
    assert wait_until(lambda: done() or process.poll() is not None, limit_s, 0.2)
    assert process.poll() is None, process.communicate()


def below(folder: Path) -> list[str]:
    """Processes that were started for a folder, its Java and Python workers too: they inherit its TMPDIR."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"TMPDIR={folder}".encode() in entry.read_bytes().split(b"\0"):
                found.append((entry.parent / "cmdline").read_text())
        except OSError:
            continue
    return found
