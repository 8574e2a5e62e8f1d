"""Chooses the next trial: the one that narrows the uncertainty of the peak rate most.

The peak rate of tau threads is known as a bracket: the highest stable rate, and the lowest unstable rate above it. Its
relative width measures the uncertainty:

    nothing tried, or nothing stable     1
    stable, never unstable               1/2, or 0.9 if its batches were too short to estimate the capacity
    both                                 (high - low) / high

The widest bracket is tried next, ties go to the fewest threads; so every thread count gets a first point before any is
refined. A thread count is tried once the one before it has a stable rate and is not flat: if doubling the threads gains
less than ``_FLAT``, no larger count is tried. The search ends when every bracket is narrower than ``NARROW``.

An unstable trial is doubted if a larger thread count was stable with more rows per task: more tasks on a shared core
cannot be faster each, so the machine was cold or busy. The trial is left out and the count retried, up to twice; if
that is contradicted too, all its trials count.

The rate to try within a bracket is the capacity estimated from batches (``capacity_per_s``) if it lies inside, else the
geometric mean. A thread count without trials starts at the rate of a smaller one, scaled in proportion.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from sluicegate.lab.profile.trials import Trial

NARROW = 0.08
"""Brackets this narrow are done: half of it costs two more trials per count, and machines vary by more than that."""
_FLAT = 0.05
_UP, _DOWN = 1.12, 0.85
_MORE_A_TASK, _DOUBTS = 1.1, 2
LEAST_PER_S = 0.5
"""The lowest rate that is tried; an operator unstable at it does not keep up at all."""


@dataclass(frozen=True, slots=True)
class Bracket:
    """Bounds on the peak rate of one thread count, from its trials."""

    threads: int
    low_per_s: float = 0.0
    high_per_s: float = math.inf
    capacity_per_s: float | None = None

    @property
    def width(self) -> float:
        if not self.low_per_s:
            return 1.0
        if math.isinf(self.high_per_s):
            return 0.5 if self.capacity_per_s else 0.9
        return (self.high_per_s - self.low_per_s) / self.high_per_s


@dataclass(frozen=True, slots=True)
class Next:
    """The next trial: thread count and rate."""

    threads: int
    rate_per_s: float


def counts(most: int) -> tuple[int, ...]:
    """The thread counts to try: powers of two, and ``most``.

    >>> counts(8), counts(6)
    ((1, 2, 4, 8), (1, 2, 4, 6))
    """
    doubled = [2**n for n in range(most.bit_length()) if 2**n <= most]
    return tuple(doubled if doubled[-1] == most else [*doubled, most])


def believed(trials: Sequence[Trial]) -> list[Trial]:
    """The trials without doubted ones (see the module docstring).

    >>> cold = Trial(1, 90.0, 0.3, 1.0, 0.5, 0, 1.0, ())
    >>> warm = Trial(2, 300.0, 0.0, 1.0, 0.5, 0, 1.0, ())
    >>> believed([cold, warm]) == [warm], believed([cold]) == [cold], len(believed([cold, cold, cold, warm]))
    (True, True, 4)
    """
    doubted = [trial for trial in trials if not trial.stable and _contradicted(trial, trials)]
    few = {one.threads for one in doubted if sum(other.threads == one.threads for other in doubted) <= _DOUBTS}
    return [trial for trial in trials if trial not in doubted or trial.threads not in few]


def _contradicted(trial: Trial, trials: Sequence[Trial]) -> bool:
    per_task = [t.rate_per_s / t.threads for t in trials if t.stable and t.threads > trial.threads]
    return max(per_task, default=0.0) > _MORE_A_TASK * trial.rate_per_s / trial.threads


def known_of(threads: int, trials: Iterable[Trial], overhead_s: float, longest_s: float) -> Bracket:
    """The bracket of one thread count, with the capacity estimated from its largest batches.

    A batch of n rows that took b seconds spent b - overhead on its rows; a rate r is stable with batches of up to
    ``longest_s`` if overhead + r longest / capacity <= longest. No rate is, where the overhead alone takes that long:
    then the capacity is not known.

    >>> trial = Trial(1, 90.0, 0.0, 1.0, 0.5, 0, 1.0, ((180, 1, 2.0),))
    >>> known_of(1, [trial], overhead_s=0.2, longest_s=2.0)
    Bracket(threads=1, low_per_s=90.0, high_per_s=inf, capacity_per_s=90.0)
    """
    mine = [trial for trial in trials if trial.threads == threads]
    low = max((trial.rate_per_s for trial in mine if trial.stable), default=0.0)
    high = min((t.rate_per_s for t in mine if not t.stable and t.rate_per_s > low), default=math.inf)
    told = [
        rows / (seconds - overhead_s) * (longest_s - overhead_s) / longest_s
        for rows, seconds in (trial.busiest_per_s for trial in mine)
        if rows and seconds > 2 * overhead_s and overhead_s < longest_s
    ]
    return Bracket(threads, low, high, median(told) if told else None)


def next_trial(known: Sequence[Bracket], first_per_s: float) -> Next | None:
    """The next trial, ``None`` if every bracket is narrow enough; ``known`` has all thread counts, ascending.

    >>> next_trial([Bracket(1), Bracket(2)], first_per_s=40.0)
    Next(threads=1, rate_per_s=40.0)
    >>> next_trial([Bracket(1, 40.0, 42.0, 41.0), Bracket(2), Bracket(4)], first_per_s=40.0)
    Next(threads=2, rate_per_s=77.9)
    >>> next_trial([Bracket(1, 40.0, 42.0), Bracket(2, 40.0, 42.0), Bracket(4)], first_per_s=40.0) is None
    True
    """
    open_ = [one for one in reached(known) if one.width > NARROW and one.high_per_s > LEAST_PER_S]
    if not open_:
        return None
    chosen = max(open_, key=lambda one: (one.width, -one.threads))
    return Next(chosen.threads, _rounded(max(_rate(chosen, known, first_per_s), LEAST_PER_S)))


def reached(known: Sequence[Bracket]) -> list[Bracket]:
    """The counts up to the first without a stable rate, or the first that is flat against the one before."""
    found: list[Bracket] = []
    for one in known:
        found.append(one)
        if not one.low_per_s or (len(found) > 1 and _flat(found[-2], one)):
            break
    return found


def _flat(before: Bracket, now: Bracket) -> bool:
    was, is_ = (one.capacity_per_s or one.low_per_s for one in (before, now))
    return is_ <= was * (1 + _FLAT * (now.threads / before.threads - 1))


def _rounded(rate_per_s: float) -> float:
    return float(f"{rate_per_s:.4g}")


def _rate(one: Bracket, known: Sequence[Bracket], first_per_s: float) -> float:
    low, high = one.low_per_s, one.high_per_s
    if not low and math.isinf(high):
        return _guess(one, known, first_per_s)
    if not low:
        told = one.capacity_per_s or 0.0
        return 0.95 * told if 0 < 0.95 * told < _DOWN * high else _DOWN * high
    if math.isinf(high):
        return max(_UP * low, 1.05 * one.capacity_per_s) if one.capacity_per_s else 4 * low
    told = one.capacity_per_s or 0.0
    inside = (rate for rate in (told, 0.95 * told) if low * 1.03 < rate < high / 1.03)
    return next(inside, math.sqrt(low * high))


def _guess(one: Bracket, known: Sequence[Bracket], first_per_s: float) -> float:
    """95% of the proportional rate of the largest smaller count that was tried."""
    before = [k for k in known if k.threads < one.threads and (k.capacity_per_s or k.low_per_s)]
    if not before:
        return first_per_s
    last = before[-1]
    return 0.95 * (last.capacity_per_s or last.low_per_s) * one.threads / last.threads
