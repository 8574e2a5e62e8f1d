"""Checks a log of growing results: each row has a key, the number of inputs so far, and the result.

The number only grows, so the row with the largest is the last and must be right; the rows before it depend on batch
boundaries, but none may occur twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from sluicegate.lab.running.app import Answer, compare

Grown = tuple[object, int, object]
"""Key, number of inputs so far, result."""


def last_of(told: Iterable[Grown]) -> dict[object, tuple[int, object]]:
    """
    >>> last_of([("a", 1, "x"), ("a", 3, "z"), ("a", 2, "y")])
    {'a': (3, 'z')}
    """
    last: dict[object, tuple[int, object]] = {}
    for key, grown, result in told:
        if key not in last or grown > last[key][0]:
            last[key] = grown, result
    return last


def judged(wanted: Mapping[object, tuple[int, object]], told: list[Grown]) -> Answer:
    """Check that the last result of every key is as ``wanted``.

    >>> judged({"a": (3, "z")}, [("a", 1, "x"), ("a", 3, "w")]).note
    "'a': 'w' instead of 'z'"
    >>> judged({"a": (3, "z")}, [("a", 3, "z"), ("a", 3, "z")]).note
    "'a' at 3 was published twice"
    """
    last = last_of(told)
    answer = compare(
        {key: grown for key, (grown, _) in wanted.items()}, {key: grown for key, (grown, _) in last.items()}, len(told)
    )
    wrong = [f"{key!r}: {last[key][1]!r} instead of {wanted[key][1]!r}" for key in last if last[key] != wanted.get(key)]
    twice = [f"{key!r} at {grown} was published twice" for (key, grown), n in _tellings(told).items() if n > 1]
    notes = [answer.note] if answer.note else [*wrong, *twice]
    return replace(answer, exact=False, note=notes[0]) if notes else answer


def _tellings(told: Iterable[Grown]) -> Counter[tuple[object, int]]:
    return Counter((key, grown) for key, grown, _ in told)
