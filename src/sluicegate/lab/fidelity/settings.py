"""Chooses allocations on which to test a model, and compares predictions with measurements."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise, product

from sluicegate.lab import agreement

Processors = Mapping[str, int]
_BUSIEST = 0.85
_LEVELS = ((1.0, 0), (2.0, 2), (1.0, 1), (1.5, 2), (3.0, 4))
"""(Factor on the least sufficient processors, least increment). The most useful come first: pipelines of many operators
use only the first ones."""
_MOST_COMBINED = 1500
_WIDEST = 6.0
"""Settings slower than the fastest by more than this factor are left out: they take too long to settle."""
_SAME_GAP = 1.0005


@dataclass(frozen=True, slots=True)
class Figures:
    """Mean and p95 latency; ``rate_per_s`` is the rows per second of one source while it works off a burst."""

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
class Setting:
    """An allocation at a rate: prediction of the twin, and mean predicted by the law alone."""

    rate_per_s: float
    processors: Processors
    predicted: Figures
    law_mean_s: float

    def compared_with(self, measured: Figures) -> Compared:
        return Compared(self.rate_per_s, self.processors, self.predicted, self.law_mean_s, measured)


@dataclass(frozen=True, slots=True)
class Compared(Setting):
    """A setting that has run, with what was measured."""

    measured: Figures

    @property
    def error(self) -> float:
        """Relative error of the predicted mean; above 0 the prediction is too slow."""
        return self.predicted.mean_s / self.measured.mean_s - 1


def allocations(busy: Mapping[str, float], most: Mapping[str, int], slots: int) -> list[dict[str, int]]:
    """All combinations of operator sizes from just enough (at most 85% busy) upward by ``_LEVELS``, within the limits.

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
    """All ways to split ``total`` processors such that each operator keeps up: the choices that DRS has.

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
    """Indices of ``count`` settings whose means differ most: the smallest ratio between neighbours is maximal.

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
    # replacing the last one by the slowest can only widen the gap
    return [i for _, i in (chosen if len(chosen) <= count else [*chosen[: count - 1], usable[-1]])]


def least_gap(means_s: Sequence[float], count: int) -> float:
    """The smallest ratio between neighbours in ``spread_out``; 1 if there are fewer than ``count`` settings."""
    chosen = [means_s[i] for i in spread_out(means_s, count)] if means_s else []
    return min((slower / faster for faster, slower in pairwise(chosen)), default=1.0) if len(chosen) == count else 1.0


def _apart(ordered: Sequence[tuple[float, int]], gap: float) -> list[tuple[float, int]]:
    """Greedy choice from the fastest on, each at least ``gap`` times the one before."""
    found = [ordered[0]]
    for one in ordered[1:]:
        if one[0] >= gap * found[-1][0]:
            found.append(one)
    return found


def median_error(compared: Iterable[Compared]) -> float:
    """Of the means that the twin predicts."""
    return agreement.median_error((one.predicted.mean_s, one.measured.mean_s) for one in compared)


def pairs_in_order(compared: Sequence[Compared], what: Callable[[Compared], float]) -> tuple[int, int]:
    """The number of pairs of settings whose measured means have the order of ``what``, and of all pairs."""
    return agreement.pairs_in_order([(what(one), one.measured.mean_s) for one in compared])
