"""What a decision of the log changed, in one line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def changed(decision: Mapping[str, Any]) -> str:
    """Processors first, then whatever else changed.

    >>> changed({"rescales": [{"operator": "count", "have": 1, "want": 3}]})
    'count 1 -> 3'
    >>> changed({"rescales": [], "changes": [{"what": "executors", "have": "1", "want": "2", "reason": ""}]})
    'executors 1 -> 2'
    """
    moves = [f"{r['operator']} {r['have']} -> {r['want']}" for r in decision.get("rescales") or ()]
    others = [change_text(change) for change in decision.get("changes") or ()]
    return ", ".join((*moves, *others))


def change_text(change: Mapping[str, Any]) -> str:
    """A change from what to what; only to what, if the old value is empty.

    >>> change_text({"what": "key groups of count", "have": "", "want": "2 of 8 moved"})
    'key groups of count: 2 of 8 moved'
    """
    if not change["have"]:
        return f"{change['what']}: {change['want']}"
    return f"{change['what']} {change['have']} -> {change['want']}"
