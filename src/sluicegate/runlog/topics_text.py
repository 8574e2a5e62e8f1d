"""Text on the topics that attached queries read: rows behind, and partitions that are idle or stuck."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_NAMED = 4
"""Most partitions that a line names; of more of them it gives the number."""


def topic_lines(tick: Mapping[str, Any]) -> list[str]:
    """A line for every query that reads Kafka, from the last tick of the controller.

    >>> clicks = {"partitions": 4, "behind": 30, "lag": {"c/0": 10, "c/2": 20}, "idle": ["c/3"], "problem": None}
    >>> topic_lines({"topics": {"clicks": clicks}})
    ['clicks: 30 rows behind (c/2 20, c/0 10), 4 partitions, idle: c/3']
    """
    return [f"{query}: {', '.join(_told(one))}" for query, one in (tick.get("topics") or {}).items()]


def _told(one: Mapping[str, Any]) -> Iterator[str]:
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
