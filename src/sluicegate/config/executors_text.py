"""Reads bounds of executors as users type them: LEAST:MOST, or one number for both."""

from __future__ import annotations

from sluicegate.errors import BadInput

_MOST_EXECUTORS = 100_000


def executors_from(text: str) -> tuple[int, int]:
    """The least and the most executors; what Spark is asked for must be a number it can hold.

    >>> executors_from("1:4"), executors_from("3")
    ((1, 4), (3, 3))
    """
    parts = text.strip().split(":")
    if len(parts) > 2 or not all(part.isascii() and part.isdigit() for part in parts):
        raise BadInput(f"executors is {text[:40]!r}: give LEAST:MOST, such as 1:4")
    if any(len(part) > len(str(_MOST_EXECUTORS)) or int(part) > _MOST_EXECUTORS for part in parts):
        raise BadInput(f"executors is {text[:40]!r}: give at most {_MOST_EXECUTORS}")
    return int(parts[0]), int(parts[-1])
