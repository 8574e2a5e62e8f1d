"""Prints lines on standard error during a run: its state every few seconds, and each move when it is made."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from sluicegate.report.figures import clock, rate, seconds
from sluicegate.runlog.batch_log import Tail
from sluicegate.runlog.failures import Failing, read_failures
from sluicegate.runlog.log_text import changed
from sluicegate.runlog.run_record import measured_s

_EVERY_S = 5.0


class ProgressLines:
    """Called with the share of the load that has been fed and the last tick of the controller.

    An ``endless`` run has no share: its lines begin with the time since the first tick.
    """

    def __init__(self, out: Console, home: Path, endless: bool = False) -> None:
        self._out, self._told_s, self._endless = out, 0.0, endless
        self._failures, self._failing = home / "failures.json", dict[str, Failing]()
        self._first_s: float | None = None
        self._decisions = Tail(home / "decisions.jsonl")
        for _ in self._decisions.lines():
            pass  # of an earlier run in this folder

    def __call__(self, share: float, tick: dict[str, Any] | None) -> None:
        for line in self._decisions.lines():
            self._moved(json.loads(line))
        self._tell_failures(time.time())
        if tick is not None and tick["at_s"] >= self._told_s + _EVERY_S:
            self._told_s = tick["at_s"]
            self._first_s = self._told_s if self._first_s is None else self._first_s
            far = clock(self._told_s - self._first_s) if self._endless else f"{share:.0%}"
            split = "  ".join(f"{name} {k}" for name, k in tick["running"].items())
            came = rate(tick.get("arrivals_per_s") or 0.0)
            self._print(f"{far:>5}  {came:>14}  latency {seconds(measured_s(tick)):>8}  processors: {split}")

    def _tell_failures(self, now_s: float) -> None:
        """Print when an operator begins to fail, at every try after that, when it stops, and when it has recovered."""
        failing = {one.operator: one for one in read_failures(self._failures)}
        for name, one in failing.items():
            if self._failing.get(name) != one:
                self._print(f"       {one.line(now_s)}")
        for name in self._failing.keys() - failing.keys():
            self._print(f"       {name}: recovered after {now_s - self._failing[name].since_s:.0f} s")
        self._failing = failing

    def _moved(self, decision: dict[str, Any]) -> None:
        moves = changed(decision)
        why = decision["reasons"][0] if decision["reasons"] else ""
        self._print(f"       moved {moves}: {why}")

    def _print(self, text: str) -> None:
        self._out.print(escape(text), soft_wrap=True)
