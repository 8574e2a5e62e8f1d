"""Mc-Stream's algorithm 1 by trial on the running pipeline: the first vertex's instances are measured, not modelled.

m_1 is raised in steps that double while they help and halve once they do not; each number is measured for ``wait_s``,
and the means over its looks are compared. A step helps if throughput rises or latency falls by ``least_gain``, and by
more than the looks scatter. A load that changes by more than ``_OTHER_LOAD`` starts a new trial from the best number so
far, or from its part for the load that is left (ours: trials only raise).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean, stdev

_OTHER_LOAD = 0.2
_ERRORS = 2.0
"""Standard errors by which two means have to differ. At half, every sixth comparison of equals finds a difference."""
_STRETCHES = 4
_HELPS_BACK = 1
"""The initial step of a trial."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """Load, throughput and latency measured with one number of instances; ``None``: not measured.

    The errors are standard errors of means over several looks, 0 where there are too few.
    """

    arrivals_per_s: float
    throughput_per_s: float | None
    latency_s: float | None
    throughput_error: float = 0.0
    latency_error: float = 0.0

    @classmethod
    def mean_of(cls, looks: Sequence[Measurement]) -> Measurement:
        """The mean of the looks, and the load by the last: in one look of a pipeline in batches two batches end, in the
        next one none.

        >>> Measurement.mean_of([Measurement(9.0, 0.0, None), Measurement(9.0, 16.0, 2.0)])
        Measurement(arrivals_per_s=9.0, throughput_per_s=8.0, latency_s=2.0, throughput_error=0.0, latency_error=0.0)
        """
        through = [one.throughput_per_s for one in looks if one.throughput_per_s is not None]
        late = [one.latency_s for one in looks if one.latency_s is not None]
        return cls(
            looks[-1].arrivals_per_s,
            fmean(through) if through else None,
            fmean(late) if late else None,
            _error(through),
            _error(late),
        )


@dataclass(frozen=True, slots=True)
class InstanceTrial:
    """State of a trial: ``m`` instances since ``since_s`` with its ``looks``; ``best`` is the best number so far,
    ``gave`` its result."""

    m: int
    since_s: float
    best: int
    gave: Measurement | None = None
    step: int = _HELPS_BACK
    growing: bool = True
    looks: tuple[Measurement, ...] = ()

    def not_yet(self, now_s: float) -> InstanceTrial:
        """The trial while the number under trial does not run yet: it is measured from now on."""
        return replace(self, since_s=now_s, looks=())

    @property
    def done(self) -> bool:
        return self.gave is not None and self.step == 0

    def after(
        self, now_s: float, seen: Measurement, wait_s: float, least_gain: float, most: int
    ) -> tuple[InstanceTrial, str]:
        """The trial after one more measurement, and the reason.

        >>> trial, tried = InstanceTrial(1, 0.0, 1), []
        >>> for now in range(10, 90, 10):  # capacity 10 rows/s each, 35 arrive
        ...     trial, _ = trial.after(now, Measurement(35.0, min(35.0, 10.0 * trial.m), 1.0), 10.0, 0.01, 64)
        ...     tried.append(trial.m)
        >>> tried, trial.done
        ([2, 4, 8, 6, 5, 4, 4, 4], True)
        """
        if self.gave is not None and _other(seen.arrivals_per_s, self.gave.arrivals_per_s):
            left = min(seen.arrivals_per_s / max(self.gave.arrivals_per_s, 1e-9), 1.0)
            m = max(math.ceil(self.best * left - 1e-9), 1)
            return InstanceTrial(m, now_s, m), f"the load is another: {m} instances are measured anew"
        if self.done:
            return self, f"{self.m} instances are the best found"
        looks = (*self.looks, seen)
        seen = Measurement.mean_of(looks)
        if now_s - self.since_s < wait_s or seen.throughput_per_s is None:
            return replace(self, looks=looks), f"{self.m} instances are being measured"
        if self.gave is None:
            return self._next(replace(self, gave=seen), now_s, most), f"{self.m} instances gave {_told(seen)}"
        if _better(seen, self.gave, least_gain):
            best = replace(self, best=self.m, gave=seen, step=self.step * 2 if self.growing else self.step // 2)
            return self._next(best, now_s, most), f"{self.m} instances gave more: {_told(seen)}"
        less = replace(self, step=self.step // 2, growing=False)
        return self._next(less, now_s, most), f"{self.m} instances gave no more than {self.best}: {_told(seen)}"

    @staticmethod
    def _next(trial: InstanceTrial, now_s: float, most: int) -> InstanceTrial:
        step = min(trial.step, max(most - trial.best, 0))
        return replace(trial, m=trial.best + step, step=step, since_s=now_s, looks=())


def _better(now: Measurement, before: Measurement, least_gain: float) -> bool:
    have, had = now.throughput_per_s or 0.0, before.throughput_per_s or 0.0
    more = have - had > max(had * least_gain, _ERRORS * math.hypot(now.throughput_error, before.throughput_error))
    if now.latency_s is None or before.latency_s is None:
        return more
    less = max(before.latency_s * least_gain, _ERRORS * math.hypot(now.latency_error, before.latency_error))
    return more or before.latency_s - now.latency_s > less


def _error(values: Sequence[float]) -> float:
    """The standard error of the mean, from up to four stretches of the looks; 0 if there are fewer than two.

    Stretches of at least two looks, as batches that end in every other look would pass for scatter.

    >>> _error([0.0, 8.0] * 4), round(_error([1.0, 1.0, 3.0, 3.0]), 3)
    (0.0, 1.0)
    """
    parts = min(len(values) // 2, _STRETCHES)
    if parts < 2:
        return 0.0
    cuts = [round(part * len(values) / parts) for part in range(parts + 1)]
    means = [fmean(values[a:b]) for a, b in pairwise(cuts)]
    return stdev(means) / math.sqrt(parts)


def _other(rate_per_s: float, before_per_s: float) -> bool:
    return abs(rate_per_s - before_per_s) > _OTHER_LOAD * max(before_per_s, 1e-9)


def _told(seen: Measurement) -> str:
    latency = "" if seen.latency_s is None else f", mean latency {seen.latency_s:.3g} s"
    return f"{seen.throughput_per_s or 0.0:,.4g} rows/s{latency}"
