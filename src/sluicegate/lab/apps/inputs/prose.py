"""Generates lines as long as those of a printed book, with a vocabulary of the size of a novel's.

Line i is a formula of i: some 12 words and 50 characters, word n with frequency about 1 / n (Zipf), frequent words
short and rare ones long.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from sluicegate.lab.apps.inputs.draws import ranked, uniform

VOCABULARY = 20_000
_LEAST_WORDS, _MOST_WORDS = 9, 14
_OPEN, _CLOSED = (
    ("a", "e", "i", "o", "u", "ai", "ea", "ou"),
    ("b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t"),
)


@cache
def word_of(rank: int) -> str:
    """
    >>> word_of(0), word_of(7), word_of(500), word_of(19_999)
    ('ba', 'bou', 'bufu', 'bedougou')
    """
    syllables, left = [], rank
    while True:
        left, at = divmod(left, len(_OPEN) * len(_CLOSED))
        syllables.append(_CLOSED[at // len(_OPEN)] + _OPEN[at % len(_OPEN)])
        if not left:
            break
        left -= 1
    return "".join(reversed(syllables))


def lines_of(first: int, count: int) -> list[str]:
    """The lines numbered ``first`` on."""
    at = np.arange(first, first + count, dtype=np.int64)
    ranks = ranked(at[:, None] * _MOST_WORDS + np.arange(_MOST_WORDS), 11, VOCABULARY).tolist()
    lengths = (_LEAST_WORDS + np.floor((_MOST_WORDS - _LEAST_WORDS + 1) * uniform(at, 12)).astype(np.int64)).tolist()
    return [" ".join(map(word_of, line[:length])) for line, length in zip(ranks, lengths, strict=True)]
