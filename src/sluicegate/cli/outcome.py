"""What `run` prints: its state and its moves while it runs, and its outcome as JSON and as lines for people."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape

from sluicegate.domain.figures import clock, number_of, promise, rate, seconds
from sluicegate.runlog.batch_log import Tail
from sluicegate.runlog.failures import Failing, read_failures
from sluicegate.runlog.log_text import changed
from sluicegate.runlog.plain_words import plain
from sluicegate.runlog.run_record import measured_s

if TYPE_CHECKING:
    from sluicegate.lab.running.outcome import Outcome


_EVERY_S = 5.0


class ProgressLines:
    """Called with the share of the load that has been fed and the last tick of the controller.

    An ``endless`` run has no share: its lines begin with the time since the first tick.
    """

    def __init__(self, out: Console, home: Path, endless: bool = False) -> None:
        self._out, self._told_s, self._endless = out, 0.0, endless
        self._failures, self._failing = home / "failures.json", dict[str, Failing]()
        self._first_s: float | None = None
        self._latency_s: float | None = None
        """The last one measured since the last line: a tick in which no row came out has none."""
        self._rows_came_out = False
        self._decisions = Tail(home / "decisions.jsonl")
        for _ in self._decisions.lines():
            pass  # of an earlier run in this folder

    def __call__(self, share: float, tick: dict[str, Any] | None) -> None:
        for line in self._decisions.lines():
            self._moved(json.loads(line))
        self._tell_failures(time.time())
        if tick is None:
            return
        self._latency_s = self._latency_s if (measured := measured_s(tick)) is None else measured
        if tick["at_s"] >= self._told_s + _EVERY_S:
            self._told_s = tick["at_s"]
            self._first_s = self._told_s if self._first_s is None else self._first_s
            far = clock(self._told_s - self._first_s) if self._endless else f"{share:.0%}"
            split = "  ".join(f"{name} {k}" for name, k in tick["running"].items())
            came = rate(tick.get("arrivals_per_s") or 0.0)
            self._print(f"{far:>5}  {came:>14}  {self._latency(tick)}  processors: {split}")

    def _latency(self, tick: dict[str, Any]) -> str:
        """The latency since the last line or, if no row came out, what is known instead."""
        measured_now_s, self._latency_s = self._latency_s, None
        self._rows_came_out = self._rows_came_out or measured_now_s is not None
        if measured_now_s is not None:
            return f"latency {seconds(measured_now_s):>8}"
        why = "no row came out since" if self._rows_came_out else "no row is out yet"
        expected_s = tick.get("predicted_mean_s")
        return f"latency: {why}" + ("" if expected_s is None else f", {seconds(expected_s)} expected")

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
        why = plain(decision["reasons"][0]) if decision["reasons"] else ""
        self._print(f"       moved {moves}: {why}")

    def _print(self, text: str) -> None:
        self._out.print(escape(text), soft_wrap=True)


def as_document(outcome: Outcome) -> dict[str, object]:
    """The JSON of the command-line contract; also what the run's folder keeps as ``outcome.json``."""
    answer, static = outcome.answer, outcome.static_peak
    return {
        "app": outcome.app,
        "policy": outcome.policy,
        "goal": outcome.goal.latency_bounds,
        "rows_in": outcome.rows_in,
        "rows_out": answer.rows_out if answer else None,
        "lost": answer.lost if answer else None,
        "duplicated": answer.duplicated if answer else None,
        "answer_exact": answer.exact if answer else None,
        "answer_note": answer.note if answer else "",
        "slo_kept": outcome.kept_share,
        "slot_seconds": outcome.slot_seconds,
        "slot_seconds_static_peak": static * outcome.seconds if static is not None else None,
        "rescales": outcome.rescales,
        "mean_s": outcome.mean_s,
        "p95_s": outcome.p95_s,
        "began_s": outcome.began_s,
        "seconds": outcome.seconds,
        "interrupted": outcome.interrupted,
        "mapped_share": outcome.mapped_share,
        "bound_by": outcome.bound,
        "decisions": list(outcome.decisions),
        "queries": list(outcome.why_grouped),
        "restarts": list(outcome.restarts),
    }


def show(outcome: Outcome, out: Console) -> None:
    """For people: every move and why, then the balance."""
    for why in outcome.why_grouped:
        out.print(f"  {escape(why)}")
    began = outcome.ticks[0]["at_s"] if outcome.ticks else 0.0
    needless = "no processor was moved" if outcome.bound else "no processor had to be moved"
    out.print("\n[bold]every move and why[/]" if outcome.decisions else f"\n{needless}")
    for decision in outcome.decisions:
        moves = changed(decision)
        why = "; ".join(plain(reason) for reason in decision["reasons"][:2])
        out.print(f"  {decision['at_s'] - began:6.0f} s  {escape(moves)}: {escape(why)}")
    _balance(outcome, out)
    for text in outcome.restarts:
        out.print(f"[yellow]{escape(text)}[/]")


def _balance(outcome: Outcome, out: Console) -> None:
    kept = f"{outcome.kept_share:.1%}" if outcome.kept_share is not None else "-"
    static = outcome.static_peak
    share = f"{outcome.slot_seconds / (static * outcome.seconds):.0%}" if static else "an unknown share"
    out.print(
        f"\n[bold]{outcome.policy}[/] kept {promise(outcome.goal.latency_bounds)} for {kept} of "
        f"{outcome.rows_in:,} rows with {share} of the slot-seconds of a fixed size for the peak, in "
        f"{number_of(outcome.rescales, 'move')}; "
        f"latency mean {seconds(outcome.mean_s)}, p95 {seconds(outcome.p95_s)}."
    )
    if outcome.mapped_share is not None:
        out.print(f"{outcome.mapped_share:.1%} of the tasks looked at ran on the executor they were mapped to.")
    if outcome.bound:
        out.print(f"[yellow]What limited it:[/] {escape(outcome.bound)}.")
    answer = outcome.answer
    if answer is not None:
        told = "exact" if answer.exact else f"WRONG ({escape(answer.note)})"
        out.print(f"The answer is {told}: {answer.lost} rows lost, {answer.duplicated} doubled.")
