"""Entries of a run's logs as lines of text: what a decision changed, and the topics that attached queries read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_NAMED = 4
"""Most partitions that a line names; of more of them it gives the number."""


def changed(decision: Mapping[str, Any]) -> str:
    """What a decision changed, in one line: processors first.

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


def topic_lines(tick: Mapping[str, Any]) -> list[str]:
    """A line for every query that reads Kafka: rows behind, and partitions that are idle or stuck at this tick.

    >>> clicks = {"partitions": 4, "behind": 30, "lag": {"c/0": 10, "c/2": 20}, "idle": ["c/3"], "problem": None}
    >>> topic_lines({"topics": {"clicks": clicks}})
    ['clicks: 30 rows behind (c/2 20, c/0 10), 4 partitions, idle: c/3']
    """
    return [f"{query}: {', '.join(_topic(one))}" for query, one in (tick.get("topics") or {}).items()]


def _topic(one: Mapping[str, Any]) -> Iterator[str]:
    if one.get("problem"):
        yield str(one["problem"])
        return
    behind, lag = one.get("behind"), sorted((one.get("lag") or {}).items(), key=lambda entry: -entry[1])
    most = ", ".join(f"{name} {rows:,}" for name, rows in lag[:_NAMED])
    if behind is not None:
        yield f"{behind:,} rows behind" + (f" ({most})" if most else "")
    yield f"{one.get('partitions', 0)} partitions"
    for state in ("idle", "stuck"):
        names = one.get(state) or []
        if names:
            yield f"{state}: " + (", ".join(names) if len(names) <= _NAMED else f"{len(names)} partitions")
