"""Lines on standard error while a run goes on: how it is every few seconds, and each move when it is made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from sluicegate.report.figures import rate, seconds
from sluicegate.runlog.batch_log import Tail
from sluicegate.runlog.decision_text import changed
from sluicegate.runlog.run_record import measured_s

_EVERY_S = 5.0


class ProgressLines:
    """Told the share of the load that has been fed and the last look of the controller."""

    def __init__(self, out: Console, home: Path) -> None:
        self._out, self._told_s = out, 0.0
        self._decisions = Tail(home / "decisions.jsonl")
        for _ in self._decisions.lines():
            pass  # of an earlier run in this folder

    def __call__(self, share: float, tick: dict[str, Any] | None) -> None:
        for line in self._decisions.lines():
            self._moved(json.loads(line))
        if tick is not None and tick["at_s"] >= self._told_s + _EVERY_S:
            self._told_s = tick["at_s"]
            split = "  ".join(f"{name} {k}" for name, k in tick["running"].items())
            came = rate(tick.get("arrivals_per_s") or 0.0)
            self._print(f"{share:5.0%}  {came:>14}  latency {seconds(measured_s(tick)):>8}  processors: {split}")

    def _moved(self, decision: dict[str, Any]) -> None:
        moves = changed(decision)
        why = decision["reasons"][0] if decision["reasons"] else ""
        self._print(f"       moved {moves}: {why}")

    def _print(self, text: str) -> None:
        self._out.print(escape(text), soft_wrap=True)
