"""Turns shares and paces that differ from the current ones into changes for the decision log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sluicegate.domain import Change, Decision


def with_changes(decision: Decision, shares: Mapping[str, tuple[float, ...]], pace_s: Mapping[str, float]) -> Decision:
    """Add the shares that are given or withdrawn and the paces that differ, each as a change with its reason.

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
        if pace != before:
            usual = "batches start as rarely as the promise allows" if pace else "batches start back to back"
            why = next((r for r in decision.reasons if r.startswith(f"pace of {name}: ")), usual)
            changes.append(Change(f"pace of {name}", f"{before:.3g} s", f"{pace:.3g} s", why))
    return replace(decision, changes=(*decision.changes, *changes))


def _shares(shares: tuple[float, ...] | None) -> str:
    return "equal" if not shares else ", ".join(f"{share:.0%}" for share in shares)
