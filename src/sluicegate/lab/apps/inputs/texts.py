"""Generates text: tweets (short lines of common words, with mentions, tags and links), and lines of a printed book.

Tweet i is a formula of i. A few words, people and tags are far more frequent than the others, a quarter of the tweets
has a tag, and a tweet has some 70 characters, about like real tweets.

The lines of a book have the vocabulary of a novel. Line i is a formula of i: some 12 words and 50 characters, word n
with frequency about 1 / n (Zipf), frequent words short and rare ones long.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from sluicegate.lab.apps.inputs.draws import ranked, uniform

_COMMON = """
    the to i a my and is you it in for of on me have so that but just with be at not was this good day up get like
    all out go no now today work love time one going got do your back what lol am really from can too know some had
    we about see will home there night want well think new still thanks need how when great off flight much here miss
    bad sad morning last more feel why her tomorrow right bed over sleep make never best happy sorry only waiting
    hours delayed cancelled plane gate luggage
"""
_WORDS = _COMMON.split()
_TOPICS = ("fail", "travel", "monday", "music", "news", "football", "weather", "coffee", "airport", "sale")
_MOST_WORDS = 24
_PEOPLE, _TAGS = 5_000, 2_000


def tag_of(rank: int) -> str:
    """
    >>> tag_of(0), tag_of(3), tag_of(42)
    ('fail', 'travel', 'News4')
    """
    topic = _TOPICS[(7 * rank) % len(_TOPICS)]
    return topic if rank < len(_TOPICS) else f"{topic.capitalize()}{rank // len(_TOPICS)}"


def texts_of(first: int, count: int) -> list[str]:
    """The texts of the tweets numbered ``first`` on."""
    at = np.arange(first, first + count, dtype=np.int64)
    places = at[:, None] * _MOST_WORDS + np.arange(_MOST_WORDS)
    words = ranked(places, 1, len(_WORDS)).tolist()
    lengths = (6 + np.floor((_MOST_WORDS - 5) * uniform(at, 2)).astype(np.int64)).tolist()
    to, tags, more = (ranked(at, salt, most).tolist() for salt, most in ((3, _PEOPLE), (4, _TAGS), (5, _TAGS)))
    traits = np.floor(100 * uniform(at, 6)).astype(np.int64).tolist()
    return [
        _text([_WORDS[word] for word in words[n][: lengths[n]]], traits[n], to[n], tags[n], more[n])
        for n in range(count)
    ]


def _text(words: list[str], trait: int, to: int, tag: int, other: int) -> str:
    """The text of a tweet; ``trait``, 0 to 99, selects what it has besides words."""
    addressed = [f"@user{to}"] if trait % 2 else []
    tags = [f"#{tag_of(tag)}"] if trait < 25 else []
    tags += [f"#{tag_of(other)}"] if trait < 8 else []
    link = [f"http://t.co/{to * 7919 + tag:x}"] if 20 <= trait < 32 else []
    shouted = [words[-1].upper() + "!!"] if trait >= 90 else [words[-1]]
    return " ".join([*addressed, *words[:-1], *shouted, *tags, *link])


VOCABULARY = 20_000
_LEAST_WORDS, _MOST_IN_A_LINE = 9, 14
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


def book_lines_of(first: int, count: int) -> list[str]:
    """The lines numbered ``first`` on."""
    at = np.arange(first, first + count, dtype=np.int64)
    ranks = ranked(at[:, None] * _MOST_IN_A_LINE + np.arange(_MOST_IN_A_LINE), 11, VOCABULARY).tolist()
    lengths = (
        _LEAST_WORDS + np.floor((_MOST_IN_A_LINE - _LEAST_WORDS + 1) * uniform(at, 12)).astype(np.int64)
    ).tolist()
    return [" ".join(map(word_of, line[:length])) for line, length in zip(ranks, lengths, strict=True)]
