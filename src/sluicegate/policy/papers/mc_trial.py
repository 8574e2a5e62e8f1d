"""Mc-Stream's algorithm 1 by trial on the running pipeline: the first vertex's instances are measured, not modelled.

m_1 is raised in steps that double while they help and halve once they do not. Each number is measured for ``wait_s``
and until rows come out: of a pipeline in batches nothing comes out for many looks, then a whole batch, so a measurement
is from the end of one batch to the end of another. A step helps if throughput rises or latency falls by ``least_gain``,
and by more than single batches scatter. A load that changes by more than ``_OTHER_LOAD`` for half of ``wait_s`` starts
a new trial from the best number so far, or from its part for the load that is left (ours: trials only raise).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sluicegate.domain.figures import rate

_OTHER_LOAD = 0.2
_ERRORS = 2.0
"""Standard errors by which two means have to differ. At half, every sixth comparison of equals finds a difference."""
_FEWEST = 4
"""Looks from which their scatter is known; below it a step is judged by ``least_gain`` alone."""
_PATIENCE = 3
"""A number with which no row comes out is given up after this many times ``wait_s``."""
_HELPS_BACK = 1
"""The initial step of a trial."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """Load, throughput and latency measured with one number of instances; ``None``: not measured.

    The errors are standard errors of the means, 0 where there are too few looks to tell.
    """

    arrivals_per_s: float
    throughput_per_s: float | None
    latency_s: float | None
    throughput_error: float = 0.0
    latency_error: float = 0.0


@dataclass(frozen=True, slots=True)
class Span:
    """Looks up to one in which rows came out: how many, the mean throughput over them, and the latency then."""

    looks: int
    throughput_per_s: float
    latency_s: float | None


def mean_of(spans: Sequence[Span], arrivals_per_s: float) -> Measurement:
    """The mean over all looks.

    >>> mean_of([Span(1, 8.0, 1.0), Span(3, 4.0, 2.0)], 9.0)
    Measurement(arrivals_per_s=9.0, throughput_per_s=5.0, latency_s=1.5, throughput_error=0.0, latency_error=0.0)
    """
    looks = [one.looks for one in spans]
    through, through_error = _mean([one.throughput_per_s for one in spans], looks)
    late = [one.latency_s for one in spans if one.latency_s is not None]
    latency_s, latency_error = _mean(late, [1] * len(late)) if late else (None, 0.0)
    return Measurement(arrivals_per_s, through, latency_s, through_error, latency_error)


@dataclass(frozen=True, slots=True)
class InstanceTrial:
    """State of a trial: ``m`` instances since ``since_s``; ``best`` is the best number so far, ``gave`` its result.

    ``spans`` are what was measured of ``m``, ``empty`` the looks since in which no row came out; ``begun``: rows
    came out since ``m`` runs. The load is another one since ``other_since_s``.
    """

    m: int
    since_s: float
    best: int
    gave: Measurement | None = None
    step: int = _HELPS_BACK
    growing: bool = True
    spans: tuple[Span, ...] = ()
    empty: int = 0
    begun: bool = False
    other_since_s: float | None = None

    @property
    def done(self) -> bool:
        return self.gave is not None and self.step == 0

    def not_yet(self, now_s: float) -> InstanceTrial:
        """The trial while the number under trial does not run yet: it is measured from now on."""
        return replace(self, since_s=now_s, spans=(), empty=0, begun=False)

    def after(
        self, now_s: float, seen: Measurement, wait_s: float, least_gain: float, most: int
    ) -> tuple[InstanceTrial, str]:
        """The trial after one more look, and the reason.

        >>> trial, tried = InstanceTrial(1, 0.0, 1), []
        >>> for now in range(10, 90, 10):  # capacity 10 rows/s each, 35 arrive
        ...     trial, _ = trial.after(now, Measurement(35.0, min(35.0, 10.0 * trial.m), 1.0), 10.0, 0.01, 64)
        ...     tried.append(trial.m)
        >>> tried, trial.done
        ([2, 4, 8, 6, 5, 4, 4, 4], True)
        """
        if self.gave is None or not _other(seen.arrivals_per_s, self.gave.arrivals_per_s):
            return replace(self, other_since_s=None)._looked(now_s, seen, wait_s, least_gain, most)
        since_s = now_s if self.other_since_s is None else self.other_since_s
        if now_s - since_s >= wait_s / 2:
            return self._anew(self.gave, now_s, seen.arrivals_per_s)
        return replace(self, other_since_s=since_s)._looked(now_s, seen, wait_s, least_gain, most)

    def _anew(self, gave: Measurement, now_s: float, arrivals_per_s: float) -> tuple[InstanceTrial, str]:
        left = min(arrivals_per_s / max(gave.arrivals_per_s, 1e-9), 1.0)
        m = max(math.ceil(self.best * left - 1e-9), 1)
        return InstanceTrial(m, now_s, m), f"the load is another: {m} instances are measured anew"

    def _looked(
        self, now_s: float, seen: Measurement, wait_s: float, least_gain: float, most: int
    ) -> tuple[InstanceTrial, str]:
        if self.done:
            return self, f"{self.m} instances are the best found"
        trial = self._with(now_s, seen)
        if not trial._is_measured(now_s, wait_s):
            return trial, f"{self.m} instances are being measured"
        now = mean_of(trial.spans or (Span(1, 0.0, seen.latency_s),), seen.arrivals_per_s)
        if trial.gave is None:
            return trial._next(now_s, most, gave=now), f"{self.m} instances gave {_told(now)}"
        if _better(now, trial.gave, least_gain):
            step = trial.step * 2 if trial.growing else trial.step // 2
            better = trial._next(now_s, most, best=self.m, gave=now, step=step)
            return better, f"{self.m} instances gave more: {_told(now)}"
        less = trial._next(now_s, most, step=trial.step // 2, growing=False)
        return less, f"{self.m} instances gave no more than {self.best}: {_told(now)}"

    def _with(self, now_s: float, seen: Measurement) -> InstanceTrial:
        """The trial with one more look; rows that come out after empty looks, first of all, are of an earlier time."""
        if seen.throughput_per_s is None:
            return self
        if not seen.throughput_per_s:
            return replace(self, empty=self.empty + 1)
        if self.empty and not self.begun:
            return replace(self, begun=True, since_s=now_s, empty=0)
        one = Span(self.empty + 1, seen.throughput_per_s / (self.empty + 1), seen.latency_s)
        return replace(self, begun=True, spans=(*self.spans, one), empty=0)

    def _is_measured(self, now_s: float, wait_s: float) -> bool:
        lasted_s = now_s - self.since_s
        ended = bool(self.spans) and not self.empty
        return (ended and lasted_s >= wait_s) or (self.empty > 0 and lasted_s >= _PATIENCE * wait_s)

    def _next(self, now_s: float, most: int, **known: Any) -> InstanceTrial:
        """The trial with what is known now, at its next number."""
        trial = replace(self, **known)
        step = min(trial.step, max(most - trial.best, 0))
        return replace(trial, m=trial.best + step, step=step).not_yet(now_s)


def _better(now: Measurement, before: Measurement, least_gain: float) -> bool:
    have, had = now.throughput_per_s or 0.0, before.throughput_per_s or 0.0
    more = have - had > max(had * least_gain, _ERRORS * math.hypot(now.throughput_error, before.throughput_error))
    if now.latency_s is None or before.latency_s is None:
        return more
    less = max(before.latency_s * least_gain, _ERRORS * math.hypot(now.latency_error, before.latency_error))
    return more or before.latency_s - now.latency_s > less


def _mean(values: Sequence[float], weights: Sequence[int]) -> tuple[float, float]:
    """The weighted mean and its standard error; 0 for fewer than ``_FEWEST`` values.

    >>> _mean([1.0, 3.0], [1, 1]), _mean([1.0, 3.0, 1.0, 3.0], [1, 1, 1, 1])[1] > 0.5
    ((2.0, 0.0), True)
    """
    whole, n = sum(weights), len(values)
    mean = sum(value * weight for value, weight in zip(values, weights, strict=True)) / whole
    if n < _FEWEST:
        return mean, 0.0
    squares = sum((weight * (value - mean)) ** 2 for value, weight in zip(values, weights, strict=True))
    return mean, math.sqrt(squares * n / (n - 1)) / whole


def _other(rate_per_s: float, before_per_s: float) -> bool:
    return abs(rate_per_s - before_per_s) > _OTHER_LOAD * max(before_per_s, 1e-9)


def _told(seen: Measurement) -> str:
    latency = "" if seen.latency_s is None else f", mean latency {seen.latency_s:.3g} s"
    return f"{rate(seen.throughput_per_s or 0.0)}{latency}"
