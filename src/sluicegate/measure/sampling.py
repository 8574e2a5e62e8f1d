"""DRS's two-layer sampling: an instance keeps every N_m-th row, the measurer pulls the instances every T_m seconds.

From an instance's samples come its arrival and service rates and their squared coefficients of variation; instances
add up to their operator. What an instance did not sample stays missing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from sluicegate.domain import OperatorObservation
from sluicegate.errors import BadInput


@dataclass(frozen=True, slots=True)
class Tally:
    """Count, sum and sum of squares: enough for a mean and a variance, and tallies add up."""

    count: int = 0
    total: float = 0.0
    squares: float = 0.0

    def plus(self, value: float) -> Tally:
        return Tally(self.count + 1, self.total + value, self.squares + value * value)

    def merged(self, other: Tally) -> Tally:
        return Tally(self.count + other.count, self.total + other.total, self.squares + other.squares)

    @property
    def mean(self) -> float | None:
        return self.total / self.count if self.count else None

    @property
    def scv(self) -> float | None:
        """Variance over squared mean; needs two values and a mean above zero."""
        if self.count < 2 or self.total <= 0:
            return None
        mean = self.total / self.count
        return max(self.squares / self.count - mean * mean, 0.0) / (mean * mean)


@dataclass(frozen=True, slots=True)
class InstanceSample:
    """First layer, inside one instance: all rows are counted, every ``every``-th is timed."""

    every: int = 1
    seen: int = 0
    service_s: Tally = Tally()
    gap_s: Tally = Tally()

    def __post_init__(self) -> None:
        if self.every < 1:
            raise BadInput(f"sampling every {self.every} rows: it must be at least 1")

    def row(self, service_s: float, gap_s: float) -> InstanceSample:
        """One more row: its service time, and the time since the row before it arrived."""
        if not (math.isfinite(service_s) and service_s >= 0 and math.isfinite(gap_s) and gap_s >= 0):
            raise BadInput(f"service {service_s} s, gap {gap_s} s: times must be finite and not negative")
        if self.seen % self.every:
            return InstanceSample(self.every, self.seen + 1, self.service_s, self.gap_s)
        return InstanceSample(self.every, self.seen + 1, self.service_s.plus(service_s), self.gap_s.plus(gap_s))


def pull(instances: Iterable[InstanceSample], interval_s: float) -> OperatorObservation:
    """Second layer: an operator's observation from its instances over the last ``interval_s``.

    >>> sample = InstanceSample().row(0.1, 0.5).row(0.3, 0.5)
    >>> seen = pull([sample, sample], interval_s=2.0)
    >>> seen.arrivals_per_s, round(seen.service_per_s, 3), seen.arrival_scv, round(seen.service_scv, 3)
    (2.0, 5.0, 0.0, 0.25)
    """
    if not interval_s > 0:
        raise BadInput(f"pulled after {interval_s} s: the interval must be above 0")
    samples = list(instances)
    if not samples:
        return OperatorObservation()
    service, gaps = Tally(), Tally()
    for sample in samples:
        service, gaps = service.merged(sample.service_s), gaps.merged(sample.gap_s)
    mean = service.mean
    return OperatorObservation(
        arrivals_per_s=sum(sample.seen for sample in samples) / interval_s,
        service_per_s=1 / mean if mean else None,
        arrival_scv=gaps.scv,
        service_scv=service.scv,
    )
