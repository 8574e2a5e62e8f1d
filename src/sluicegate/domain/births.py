"""A small weighted histogram of row creation times, passed along with a batch to measure latency without its rows.

A weight counts rows that entered the pipeline from outside, regardless of later transformations: a row that was split
into eight words or filtered out keeps its weight of one. Two histograms merge by adding; when there are more than
``MOST`` points, neighbours in time are joined at their weighted mean, which keeps the overall mean exact.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sluicegate.domain.goal import Goal

MOST = 48
_WINDOW_S = 10.0
"""A promise is judged over all rows published in the same window of this length."""


@dataclass(frozen=True, slots=True)
class Births:
    """Pairs of (time in seconds since the epoch, rows created then), in order of time.

    >>> births = Births.of([(10.0, 1.0), (12.0, 3.0)])
    >>> births.weight, births.mean_s, births.ages_s(13.0)
    (4.0, 11.5, ((3.0, 1.0), (1.0, 3.0)))
    """

    points: tuple[tuple[float, float], ...] = ()

    @classmethod
    def of(cls, points: Iterable[tuple[float, float]]) -> Births:
        return cls(_joined(sorted((float(t), float(w)) for t, w in points if w > 0)))

    @classmethod
    def merged(cls, parts: Iterable[Births]) -> Births:
        return cls.of(point for part in parts for point in part.points)

    @property
    def weight(self) -> float:
        return sum(w for _, w in self.points)

    @property
    def mean_s(self) -> float | None:
        """The mean creation time; ``None`` if the histogram is empty."""
        weight = self.weight
        return sum(t * w for t, w in self.points) / weight if weight > 0 else None

    def ages_s(self, at_s: float) -> tuple[tuple[float, float], ...]:
        """Pairs of (age at ``at_s``, rows); negative ages from clock skew count as 0."""
        return tuple((max(at_s - t, 0.0), w) for t, w in self.points)


def _joined(points: list[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """Join neighbouring points into at most ``MOST`` points of about equal weight."""
    if len(points) <= MOST:
        return tuple(points)
    step = sum(w for _, w in points) / MOST
    out: list[tuple[float, float]] = []
    total = weight = moment = 0.0
    for t, w in points:
        weight, moment, total = weight + w, moment + t * w, total + w
        if total >= step * (len(out) + 1) - 1e-9 or w >= step:
            out.append((moment / weight, weight))
            weight = moment = 0.0
    if weight > 0:
        out.append((moment / weight, weight))
    return tuple(out)


def quantile_s(ages: Iterable[tuple[float, float]], share: float) -> float | None:
    """The age not exceeded by ``share`` of the rows; ``None`` if there are none.

    >>> quantile_s([(1.0, 90.0), (5.0, 10.0)], 0.5), quantile_s([(1.0, 90.0), (5.0, 10.0)], 0.95)
    (1.0, 5.0)
    """
    ordered = sorted(ages)
    wanted, seen = share * sum(w for _, w in ordered), 0.0
    for age, weight in ordered:
        seen += weight
        if seen >= wanted - 1e-9:
            return age
    return None


def kept_share(ages: Iterable[tuple[float, float, float]], goal: Goal) -> float | None:
    """Share of rows published in windows in which every latency promise was kept; ``None`` without a promise.

    ``ages`` are (time of publication, age, rows).

    >>> kept_share([(1.0, 2.0, 30.0), (11.0, 9.0, 10.0)], Goal(mean_s=3.0))
    0.75
    """
    bounds = goal.latency_bounds
    if not bounds:
        return None
    windows: dict[int, list[tuple[float, float]]] = {}
    for published_s, age_s, rows in ages:
        windows.setdefault(int(published_s // _WINDOW_S), []).append((age_s, rows))
    kept = total = 0.0
    for found in windows.values():
        weight = sum(rows for _, rows in found)
        if weight > 0:
            measured = {"mean": sum(age_s * rows for age_s, rows in found) / weight}
            measured |= {what: quantile_s(found, int(what[1:]) / 100) or 0.0 for what in bounds if what != "mean"}
            total += weight
            kept += weight if all(measured[what] <= bound for what, bound in bounds.items()) else 0.0
    return kept / total if total else 1.0
