"""Puts the reasons of a log into words for people on call who know the pipeline, not the theory."""

from __future__ import annotations

import re

_WORDS = (
    (r"\bE\[T\] inf s\b", "the queue there would grow without bound"),
    (r"\bE\[T\] ([\d.,e+-]+ s)\b", r"a row spends about \1 there"),
    (r"\bmodel bias 1\.00\b", "predictions have been right on average"),
    (r"\bmodel bias ([\d.]+)\b", r"latency has been \1 times what was predicted, which is allowed for"),
    (r"\b(\d+%) in reserve\b", r"\1 of the promise is kept in reserve"),
    (r"^(\S+: |)load: ", r"\1planned for a load of "),
    (r"(?<![\d.,])1 processors carry\b", "1 processor carries"),
    (r"(?<![\d.,])1 processors\b", "1 processor"),
    (r"\(goal ([\d.]+ s)\)", r"(planned to stay below \1)"),
)


def plain(reason: str) -> str:
    """
    >>> plain("rank: 2 processors carry 80 rows/s at 50 rows/s each (80% busy), E[T] 1.44 s")
    'rank: 2 processors carry 80 rows/s at 50 rows/s each (80% busy), a row spends about 1.44 s there'
    >>> plain("rank: 1 processors carry 20 rows/s"), plain("rank: load: 20 rows/s as it is now (no forecast)")
    ('rank: 1 processor carries 20 rows/s', 'rank: planned for a load of 20 rows/s as it is now (no forecast)')
    """
    for pattern, words in _WORDS:
        reason = re.sub(pattern, words, reason)
    return reason
