"""Mc-Stream's algorithm 1 by trial on the running pipeline: the first vertex's instances are measured, not modelled.

m_1 is raised in steps that double while they help and halve once they do not; each number is measured for ``wait_s``. A
step helps if throughput rises or latency falls by ``least_gain``. A load that changes by more than ``_OTHER_LOAD``
starts a new trial from the best number so far.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

_OTHER_LOAD = 0.2
_HELPS_BACK = 1
"""The initial step of a trial."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """Load, throughput and latency measured with one number of instances; ``None``: not measured."""

    arrivals_per_s: float
    throughput_per_s: float | None
    latency_s: float | None


@dataclass(frozen=True, slots=True)
class InstanceTrial:
    """State of a trial: ``m`` instances since ``since_s``; ``best`` is the best number so far, ``gave`` its result."""

    m: int
    since_s: float
    best: int
    gave: Measurement | None = None
    step: int = _HELPS_BACK
    growing: bool = True

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
            return InstanceTrial(
                self.best, now_s, self.best
            ), f"the load is another: {self.best} instances are measured anew"
        if self.done or now_s - self.since_s < wait_s or seen.throughput_per_s is None:
            return self, f"{self.m} instances are {'the best found' if self.done else 'being measured'}"
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
        return replace(trial, m=trial.best + step, step=step, since_s=now_s)


def _better(now: Measurement, before: Measurement, least_gain: float) -> bool:
    more = (now.throughput_per_s or 0.0) > (before.throughput_per_s or 0.0) * (1 + least_gain)
    if now.latency_s is None or before.latency_s is None:
        return more
    return more or now.latency_s < before.latency_s * (1 - least_gain)


def _other(rate_per_s: float, before_per_s: float) -> bool:
    return abs(rate_per_s - before_per_s) > _OTHER_LOAD * max(before_per_s, 1e-9)


def _told(seen: Measurement) -> str:
    latency = "" if seen.latency_s is None else f", mean latency {seen.latency_s:.3g} s"
    return f"{seen.throughput_per_s or 0.0:,.4g} rows/s{latency}"
