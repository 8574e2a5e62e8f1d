"""Which allocations to compare a model on, and how predictions and measurements compare."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice, pairwise, product

Processors = Mapping[str, int]
_BUSIEST = 0.85
_LEVELS = ((1.0, 0), (2.0, 2), (1.0, 1), (1.5, 2), (3.0, 4))
"""Times just enough, and at least so many more; the telling ones first, for pipelines of many operators."""
_MOST_COMBINED = 1500
_WIDEST = 6.0
"""Slower by more than this than the fastest takes longer to settle than anybody waits."""
_SAME_GAP = 1.0005


@dataclass(frozen=True, slots=True)
class Figures:
    """``rate_per_s`` is of one source's rows while many wait."""

    mean_s: float
    p95_s: float
    rate_per_s: float


def typical(rounds: Sequence[Figures]) -> Figures:
    """The median of each figure.

    >>> typical([Figures(2.0, 3.0, 9.0), Figures(7.0, 30.0, 2.0), Figures(2.2, 2.9, 8.0)])
    Figures(mean_s=2.2, p95_s=3.0, rate_per_s=8.0)
    """
    return Figures(
        statistics.median(one.mean_s for one in rounds),
        statistics.median(one.p95_s for one in rounds),
        statistics.median(one.rate_per_s for one in rounds),
    )


@dataclass(frozen=True, slots=True)
class Compared:
    """One setting: what the twin said, what the law alone said of the mean, and what was measured, once it was."""

    rate_per_s: float
    processors: Processors
    predicted: Figures
    law_mean_s: float
    measured: Figures = Figures(math.nan, math.nan, math.nan)

    @property
    def error(self) -> float:
        """Of the mean, as a share of what was measured; above 0 is predicted too slow."""
        return self.predicted.mean_s / self.measured.mean_s - 1


def allocations(busy: Mapping[str, float], most: Mapping[str, int], slots: int) -> list[dict[str, int]]:
    """Every operator from just enough to twice that and a little more, in all combinations, within what there is.

    >>> allocations({"a": 0.8, "b": 1.6}, {"a": 2, "b": 4}, slots=4)
    [{'a': 1, 'b': 2}, {'a': 1, 'b': 3}, {'a': 2, 'b': 2}]
    """
    enough = _enough(busy)
    if any(enough[name] > most[name] for name in busy):
        return []
    levels = _LEVELS[: max(int(_MOST_COMBINED ** (1 / len(busy))), 2)]
    choices = [
        sorted({min(max(math.ceil(times * k), k + more), most[name]) for times, more in levels})
        for name, k in enough.items()
    ]
    combined = (dict(zip(busy, ks, strict=True)) for ks in product(*choices))
    return [k for k in combined if sum(k.values()) <= slots]


def splits(busy: Mapping[str, float], most: Mapping[str, int], total: int) -> list[dict[str, int]]:
    """All ways to give ``total`` processors to operators so that each keeps up: what DRS chooses from.

    >>> splits({"a": 0.8, "b": 1.6}, {"a": 2, "b": 4}, total=5)
    [{'a': 1, 'b': 4}, {'a': 2, 'b': 3}]
    """
    enough = _enough(busy)
    ranges = [range(enough[name], min(most[name], total) + 1) for name in busy]
    found = (dict(zip(busy, ks, strict=True)) for ks in product(*ranges) if sum(ks) == total)
    return list(islice(found, _MOST_COMBINED))


def _enough(busy: Mapping[str, float]) -> dict[str, int]:
    return {name: max(math.ceil(work / _BUSIEST - 1e-9), 1) for name, work in busy.items()}


def spread_out(means_s: Sequence[float], count: int) -> list[int]:
    """The numbers of ``count`` settings whose means lie as far apart as can be: their least ratio is the largest.

    >>> spread_out([1.0, 1.05, 2.0, 4.0, 3.9, 60.0], 3)
    [0, 2, 3]
    """
    usable = sorted((mean, i) for i, mean in enumerate(means_s) if mean <= _WIDEST * min(means_s))
    low, high, chosen = 1.0, _WIDEST, usable
    while len(usable) > count and high / low > _SAME_GAP:
        gap = math.sqrt(low * high)
        apart = _apart(usable, gap)
        if len(apart) >= count:
            low, chosen = gap, apart
        else:
            high = gap
    # the slowest of all is as far from the last but one, or farther
    return [i for _, i in (chosen if len(chosen) <= count else [*chosen[: count - 1], usable[-1]])]


def least_gap(means_s: Sequence[float], count: int) -> float:
    """The ratio of the two that are nearest, of ``count`` settings that lie as far apart as can be."""
    chosen = [means_s[i] for i in spread_out(means_s, count)] if means_s else []
    return min((slower / faster for faster, slower in pairwise(chosen)), default=1.0) if len(chosen) == count else 1.0


def _apart(ordered: Sequence[tuple[float, int]], gap: float) -> list[tuple[float, int]]:
    """From the fastest on, each at least ``gap`` times the one before."""
    found = [ordered[0]]
    for one in ordered[1:]:
        if one[0] >= gap * found[-1][0]:
            found.append(one)
    return found


def median_error(compared: Iterable[Compared]) -> float:
    return statistics.median(abs(one.error) for one in compared)


def pairs_in_order(compared: Sequence[Compared], what: Callable[[Compared], float]) -> tuple[int, int]:
    """How many pairs of settings come in the order in which ``what`` puts them, and how many pairs there are."""
    pairs = list(combinations(compared, 2))
    right = sum((what(a) - what(b)) * (a.measured.mean_s - b.measured.mean_s) > 0 for a, b in pairs)
    return right, len(pairs)
