"""`sluicegate top`: a run in the terminal, live."""

from __future__ import annotations

import select
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.live import Live

from sluicegate.cli.out import console
from sluicegate.cli.status import LATEST_BYTES
from sluicegate.cli.top_frame import top_frame
from sluicegate.runlog.run_record import read_record
from sluicegate.runlog.runs import find_run

_EVERY_S = 1.0
_LEAVE = "q"


def top(
    folder: Annotated[
        Path | None, typer.Argument(metavar="[FOLDER]", help="Folder of the run (default: the newest run).")
    ] = None,
) -> int:
    """Watch a run: operators, load and latency against the promise, the last decisions. Exit with q or Ctrl-C."""
    chosen, out = find_run(folder), console()
    if not out.is_terminal or out.is_dumb_terminal:
        out.print(top_frame(read_record(chosen, LATEST_BYTES), time.time(), out))
        return 0
    with suppress(KeyboardInterrupt):  # the usual way to leave
        _watch(chosen, out)
    return 0


def _watch(folder: Path, out: Console) -> None:
    with _keys() as pressed, Live(console=out, screen=True, auto_refresh=False) as live:
        while True:
            live.update(top_frame(read_record(folder, LATEST_BYTES), time.time(), out), refresh=True)
            if pressed(_EVERY_S) == _LEAVE:
                return


@contextmanager
def _keys() -> Iterator[Callable[[float], str]]:
    """A function that waits up to that long for a key; during the block keys are read one by one, without Enter."""
    if not sys.stdin.isatty():
        yield _none_pressed
        return
    before = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin)
    try:
        yield _pressed
    finally:
        # immediately: draining would block on a terminal that is no longer read
        termios.tcsetattr(sys.stdin, termios.TCSANOW, before)


def _none_pressed(wait_s: float) -> str:
    time.sleep(wait_s)
    return ""


def _pressed(wait_s: float) -> str:
    ready, _, _ = select.select([sys.stdin], [], [], wait_s)
    # a closed terminal is always ready and returns nothing: leave
    return (sys.stdin.read(1) or _LEAVE) if ready else ""
