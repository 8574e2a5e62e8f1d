"""Plays the cells of a long benchmark: the least measured first, within the minutes there are, past one that fails.

A cell is one line of a table, or the few lines that one run gives. Each call plays every cell ``rounds`` times or until
the minutes are over, beginning with what was recorded fewest times: a benchmark that is called again adds to its table
where it is thinnest. A cell that fails is named and not played again; the others go on, and the exit code is 1.
"""

from __future__ import annotations

import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from statistics import fmean

from sluicegate.errors import SluicegateError


class Turns:
    """``each_s`` is what a cell takes, until one has been timed; ``recorded`` how often each was measured before."""

    def __init__(
        self,
        cells: Sequence[str],
        recorded: Counter[str],
        rounds: int = 1,
        minutes: float = float("inf"),
        each_s: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cells, self._recorded, self._rounds, self._each_s = list(cells), recorded, rounds, each_s
        self._clock, self._until_s = clock, clock() + 60 * minutes
        self._played, self._took_s = Counter[str](), list[float]()
        self.failed: list[str] = []

    def __iter__(self) -> Iterator[str]:
        while (cell := self._next()) is not None:
            left_s, all_left_s = self._until_s - self._clock(), self.left * self.each_s
            if self._played and left_s < self.each_s:
                print(f"the time is over; {self.left} of the cells are left for another call", flush=True)
                return
            print(f"{cell}; {self.left} left, about {min(left_s, all_left_s) / 60:.1f} min", flush=True)
            self._played[cell] += 1
            yield cell

    @property
    def left(self) -> int:
        """How many cells are still to be played."""
        return sum(self._rounds - self._played[cell] for cell in self._cells)

    @property
    def each_s(self) -> float:
        """What a cell takes."""
        return fmean(self._took_s) if self._took_s else self._each_s

    @contextmanager
    def playing(self, cell: str) -> Iterator[None]:
        """Time the cell; if it fails, name it and leave it out from now on."""
        began_s = self._clock()
        try:
            yield
            self._took_s.append(self._clock() - began_s)
        except SluicegateError as problem:
            if _interrupted(problem):
                raise KeyboardInterrupt from problem
            self.failed.append(f"{cell}: {problem}")
            self._cells = [one for one in self._cells if one != cell]
            print(f"failed: {self.failed[-1]}", flush=True)

    def end(self) -> None:
        """Exit with what failed, if anything did."""
        if self.failed:
            raise SystemExit("; ".join(self.failed))

    def _next(self) -> str | None:
        open_ = [cell for cell in self._cells if self._played[cell] < self._rounds]
        return min(open_, key=lambda cell: self._recorded[cell] + self._played[cell], default=None)


def _interrupted(problem: BaseException | None) -> bool:
    """Whether it was raised while an interrupt ended the cell: what is stopped then may fail too."""
    return problem is not None and (isinstance(problem, KeyboardInterrupt) or _interrupted(problem.__context__))


class Terminated(KeyboardInterrupt):
    """SIGTERM has come; unlike Ctrl-C at a terminal, it has come to this process alone."""


def end_as_by_ctrl_c() -> None:
    """Let SIGTERM end a benchmark as Ctrl-C does: what it started, clusters above all, is stopped on the way out."""

    def ended(number: int, frame: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one would interrupt the stopping
        raise Terminated

    signal.signal(signal.SIGTERM, ended)


def to_its_end(words: Sequence[str]) -> int:
    """Run a program; if this process is interrupted, wait until it has stopped what it started.

    ``subprocess.run`` would kill it a quarter of a second later, and clusters that it started would be left behind.
    """
    with subprocess.Popen(words) as process:
        try:
            return process.wait()
        except KeyboardInterrupt as why:
            if isinstance(why, Terminated):  # Ctrl-C it has heard itself
                process.terminate()
            process.wait()
            raise
