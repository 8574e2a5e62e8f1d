"""Which allocations to compare a model on, and how predictions and measurements compare."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

Processors = Mapping[str, int]
_BUSIEST = 0.85
_SCALES = (1.0, 1.25, 1.5, 2.0, 3.0, 4.0)
_WIDEST = 6.0
"""Slower by more than this than the fastest takes longer to settle than anybody waits."""


@dataclass(frozen=True, slots=True)
class Figures:
    """``rate_per_s`` is of one source's rows while many wait."""

    mean_s: float
    p95_s: float
    rate_per_s: float


@dataclass(frozen=True, slots=True)
class Compared:
    """One allocation: what the twin said, what the law alone said of the mean, and what was measured."""

    processors: Processors
    predicted: Figures
    law_mean_s: float
    measured: Figures

    @property
    def error(self) -> float:
        """Of the mean, as a share of what was measured; above 0 is predicted too slow."""
        return self.predicted.mean_s / self.measured.mean_s - 1


def allocations(busy: Mapping[str, float], most: Mapping[str, int], slots: int) -> list[dict[str, int]]:
    """From just enough to plenty, and just enough with one operator given more, within what there is.

    >>> allocations({"a": 0.8, "b": 1.6}, {"a": 4, "b": 4}, slots=4)
    [{'a': 1, 'b': 2}, {'a': 2, 'b': 2}, {'a': 1, 'b': 3}]
    """

    def scaled(scale: float, extra: str = "", more: int = 0) -> dict[str, int]:
        wanted = {n: math.ceil(scale * b / _BUSIEST - 1e-9) + (more if n == extra else 0) for n, b in busy.items()}
        return {name: min(max(k, 1), most[name]) for name, k in wanted.items()}

    found = [scaled(scale) for scale in _SCALES]
    found += [scaled(1.0, name, more) for name in busy for more in (1, 2)]
    keeps_up = (k for k in found if all(busy[name] <= _BUSIEST * k[name] + 1e-9 for name in busy))
    fits = [k for k in keeps_up if sum(k.values()) <= slots]
    return [k for i, k in enumerate(fits) if k not in fits[:i]]


def spread_out(means_s: Sequence[float], count: int) -> list[int]:
    """The numbers of ``count`` settings whose means lie as evenly apart as can be, in ratios.

    >>> spread_out([1.0, 1.05, 2.0, 4.0, 3.9, 60.0], 3)
    [0, 2, 3]
    """
    usable = sorted((mean, i) for i, mean in enumerate(means_s) if mean <= _WIDEST * min(means_s))
    if len(usable) <= count:
        return [i for _, i in usable]
    chosen = [usable[0], usable[-1]]
    while len(chosen) < count:
        rest = [one for one in usable if one not in chosen]
        chosen.append(max(rest, key=lambda one: min(abs(math.log(one[0] / other[0])) for other in chosen)))
    return [i for _, i in sorted(chosen)]


def median_error(compared: Iterable[Compared]) -> float:
    return statistics.median(abs(one.error) for one in compared)


def pairs_in_order(compared: Sequence[Compared], what: Callable[[Compared], float]) -> tuple[int, int]:
    """How many pairs of settings come in the order in which ``what`` puts them, and how many pairs there are."""
    pairs = list(combinations(compared, 2))
    right = sum((what(a) - what(b)) * (a.measured.mean_s - b.measured.mean_s) > 0 for a, b in pairs)
    return right, len(pairs)
