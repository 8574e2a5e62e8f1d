"""The outcome of a run, as the JSON of the command-line contract and as lines for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape

from sluicegate.report.figures import promise, seconds
from sluicegate.runlog.log_text import changed

if TYPE_CHECKING:
    from sluicegate.lab.running.outcome import Outcome


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
        why = "; ".join(decision["reasons"][:2])
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
        f"{outcome.rescales} moves; "
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
