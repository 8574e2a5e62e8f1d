"""Mc-Stream's data stream redirection (algorithm 2, Eq 4 to 6 and 10): reacts to the queues of one vertex.

    deviation = mean over instances of |queue - mean queue|                       Eq 4
    share of instance k = (free places in k's queue) / (free places of all)       Eq 10

A mean queue outside its bounds triggers algorithm 1 again, for this vertex only; a deviation above its bound triggers
new shares. Our reading: with every queue full Eq 10 is 0/0, and rows are routed evenly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sluicegate.domain.topology import require, require_number


@dataclass(frozen=True, slots=True)
class QueueBounds:
    """The paper names these and gives no values; ours, in rows:

    places 1024            of an instance's queue (the receive buffer of the system the paper builds on)
    least_mean 1           an instance whose queue is mostly empty may be superfluous
    most_mean 512          half full: the last point at which a new instance still prevents an overflow
    most_deviation 102.4   a tenth of the places: smaller differences are transient
    """

    places: float = 1024.0
    least_mean: float = 1.0
    most_mean: float = 512.0
    most_deviation: float = 102.4

    def __post_init__(self) -> None:
        require_number(self.places, "places of a queue", above=True)
        require_number(self.least_mean, "least mean queue")
        require_number(self.most_deviation, "most deviation of queues")
        require(
            self.least_mean < self.most_mean <= self.places,
            f"mean queue bounds {self.least_mean:g}, {self.most_mean:g}: need least < most <= {self.places:g} places",
        )


@dataclass(frozen=True, slots=True)
class Redirection:
    """The reaction to the queues of a vertex: whether to resize it, and new shares (``None``: unchanged)."""

    resize: bool
    shares: tuple[float, ...] | None
    reason: str


def load_deviation(queues: Sequence[float]) -> float:
    """Mean absolute deviation of the queues; 0 if there are none.

    >>> load_deviation([0.0, 10.0, 10.0, 20.0])
    5.0
    """
    if not queues:
        return 0.0
    mean = math.fsum(queues) / len(queues)
    return math.fsum(abs(queue - mean) for queue in queues) / len(queues)


def shares_by_free_places(queues: Sequence[float], places: float) -> tuple[float, ...]:
    """Eq 10: the probability with which each instance gets the next row.

    >>> shares_by_free_places([90.0, 50.0, 60.0], places=100.0)
    (0.1, 0.5, 0.4)
    >>> shares_by_free_places([100.0, 120.0], places=100.0)
    (0.5, 0.5)
    """
    free = [max(places - queue, 0.0) for queue in queues]
    total = math.fsum(free)
    return tuple(one / total for one in free) if total > 0 else (1 / len(free),) * len(free)


def shares_by_speed(speeds_per_s: Sequence[float], most_uneven: float = 1.25) -> tuple[float, ...] | None:
    """Shares in proportion to the speed of each instance, so that all finish together; ``None`` while speeds are close.

    In micro-batches no instance has a queue of its own: speed replaces the free places of Eq 10, and a batch lasts as
    long as its slowest task. A ratio up to ``most_uneven`` is taken as transient.

    >>> shares_by_speed([100.0, 50.0, 50.0]), shares_by_speed([100.0, 90.0])
    ((0.5, 0.25, 0.25), None)
    """
    if len(speeds_per_s) < 2 or not all(math.isfinite(v) and v > 0 for v in speeds_per_s):
        return None
    if max(speeds_per_s) <= most_uneven * min(speeds_per_s):
        return None
    total = math.fsum(speeds_per_s)
    return tuple(speed / total for speed in speeds_per_s)


def equally_fast(speeds_per_s: Sequence[float], within: float = 1.1) -> bool:
    """Whether the speeds are so close that equal shares suffice; stricter than ``shares_by_speed``, as a hysteresis.

    >>> equally_fast([100.0, 95.0]), equally_fast([100.0, 85.0]), equally_fast([])
    (True, False, False)
    """
    return len(speeds_per_s) > 1 and min(speeds_per_s) > 0 and max(speeds_per_s) <= within * min(speeds_per_s)


def redirect(queues: Sequence[float], bounds: QueueBounds | None = None) -> Redirection:
    """Run algorithm 2 for one vertex.

    >>> redirect([600.0, 700.0]).resize, redirect([10.0, 400.0]).shares is not None
    (True, True)
    """
    bounds = bounds or QueueBounds()
    if not queues:
        return Redirection(False, None, "queues not measured")
    mean, deviation = math.fsum(queues) / len(queues), load_deviation(queues)
    resize = not bounds.least_mean <= mean <= bounds.most_mean
    uneven = len(queues) > 1 and deviation > bounds.most_deviation
    why = (
        f"mean queue {mean:,.4g} rows {'outside' if resize else 'within'} {bounds.least_mean:g} to "
        f"{bounds.most_mean:g}, deviation {deviation:,.4g} {'above' if uneven else 'within'} {bounds.most_deviation:g}"
    )
    return Redirection(resize, shares_by_free_places(queues, bounds.places) if uneven else None, why)
