"""Shares and paces of a decision that differ from those in force, as changes for the decision log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sluicegate.control.rules import SLIGHT
from sluicegate.domain import Change, Decision


def with_changes(decision: Decision, shares: Mapping[str, tuple[float, ...]], pace_s: Mapping[str, float]) -> Decision:
    """Shares that are given or withdrawn, and paces that move by more than a tenth, as changes with their reasons.

    ``shares`` and ``pace_s`` are those in force.
    """
    changes = [
        Change(f"shares of {name}", _shares(shares.get(name)), _shares(decision.shares.get(name)), why)
        for name in dict.fromkeys((*shares, *decision.shares))
        if shares.get(name) != decision.shares.get(name)
        for why in [next((r for r in decision.reasons if r.startswith(f"{name}: ")), "as the policy proposes")]
    ]
    for name, pace in decision.pace_s.items():
        before = pace_s.get(name, 0.0)
        if not _same_pace(pace, before):
            usual = "batches start as rarely as the promise allows" if pace else "batches start back to back"
            why = next((r for r in decision.reasons if r.startswith(f"pace of {name}: ")), usual)
            changes.append(Change(f"pace of {name}", f"{before:.3g} s", f"{pace:.3g} s", why))
    known = {name: pace_s.get(name, 0.0) for name in decision.pace_s}
    kept = {name: known[name] if _same_pace(p, known[name]) else p for name, p in decision.pace_s.items()}
    return replace(decision, pace_s=kept, changes=(*decision.changes, *changes))


def _same_pace(pace_s: float, before_s: float) -> bool:
    """A pace that moved by a few percent is not worth a new plan."""
    return abs(pace_s - before_s) <= SLIGHT * max(before_s, 0.05)


def _shares(shares: tuple[float, ...] | None) -> str:
    return "equal" if not shares else ", ".join(f"{share:.0%}" for share in shares)
