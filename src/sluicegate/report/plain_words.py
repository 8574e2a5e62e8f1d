"""Rewrites the loop's reasons and refusals for people on call who know the pipeline, not the theory."""

from __future__ import annotations

import re

RULES = {
    "metrics": "measurements are missing or too old to act on",
    "one at a time": "the last move is not in force yet",
    "bounds": "the limits allow no more, or no fewer",
    "window": "processors are removed only once fewer have sufficed for a while",
    "calm": "no processors are removed while latency is near or above its bound",
    "overdue": "what was requested did not arrive in time; the loop continues without it",
    "dead band": "a change this small is not worth making",
    "no escalation": "more processors did not help the last time, so no more are given",
    "cool-down": "the last change is too recent; its effect is measured first",
    "it pays": "the move would cost more than it gains",
    "key groups": "the state has that many key groups, and each task needs at least one",
    "slots": "the mapping needs more executors than are allowed, so Spark places the tasks",
    "hot key": "all rows of a key go to one task, however many tasks there are",
}
"""What each rule of the governor means (``control/governor.py``)."""

_WORDS = (
    (r"\bE\[T\] inf s\b", "the queue there would grow without bound"),
    (r"\bE\[T\] ([\d.,e+-]+ s)\b", r"a row spends about \1 there"),
    (r"\bmodel bias 1\.00\b", "predictions have been right on average"),
    (r"\bmodel bias ([\d.]+)\b", r"latency has been \1 times what was predicted, which is allowed for"),
    (r"\b(\d+%) in reserve\b", r"\1 of the promise is kept in reserve"),
    (r"^load: ", "planned for a load of "),
    (r"\(goal ([\d.]+ s)\)", r"(planned to stay below \1)"),
)


def plain(reason: str) -> str:
    """
    >>> plain("rank: 2 processors carry 80 rows/s at 50 rows/s each (80% busy), E[T] 1.44 s")
    'rank: 2 processors carry 80 rows/s at 50 rows/s each (80% busy), a row spends about 1.44 s there'
    """
    for pattern, words in _WORDS:
        reason = re.sub(pattern, words, reason)
    return reason


def meaning(rule: str) -> str:
    """
    >>> meaning("cool-down")
    'the last change is too recent; its effect is measured first'
    """
    return RULES.get(rule, "")
