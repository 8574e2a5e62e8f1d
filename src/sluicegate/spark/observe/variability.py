"""Variability of arrivals and of service of an operator, as squared coefficients of variation (SCV).

Single rows are not measured, so both come from counts and totals:

- arrivals: the variance over the mean of the rows that arrive between two ticks. Over many arrivals that ratio tends to
  the SCV of the gaps between them (1 for Poisson, 0 for equal gaps). The variance is half the mean square of successive
  differences, so that a rising load does not count as variability.
- service: the SCV of task seconds per row, over batches.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from sluicegate.runlog.batch_log import BatchRecord

_LOOKS = 30
_BATCHES = 50
_LEAST = 5
"""With fewer samples the SCV is unknown."""


@dataclass(slots=True)
class Variability:
    """Variability of one operator over its last ticks and batches."""

    came: deque[int] = field(default_factory=lambda: deque(maxlen=_LOOKS))
    costs_s: deque[float] = field(default_factory=lambda: deque(maxlen=_BATCHES))

    def take(self, arrived: int, records: Iterable[BatchRecord]) -> None:
        """
        >>> steady, doubled = Variability(), Variability()
        >>> for look in range(8):
        ...     steady.take(100, ())
        ...     doubled.take(100 + 100 * (look % 2), ())
        >>> steady.arrival_scv, doubled.arrival_scv
        (0.0, 33.333333333333336)
        """
        self.came.append(arrived)
        warm = (r for r in records if not r.cold and r.rows and r.work_s is not None)
        self.costs_s.extend(r.work_s / r.rows for r in warm if r.work_s is not None)

    @property
    def arrival_scv(self) -> float | None:
        counts = list(self.came)
        if len(counts) < _LEAST or not any(counts):
            return None
        steps = [(b - a) ** 2 for a, b in pairwise(counts)]
        return sum(steps) / len(steps) / 2 / (sum(counts) / len(counts))

    @property
    def service_scv(self) -> float | None:
        if len(self.costs_s) < _LEAST or not any(self.costs_s):
            return None
        mean_s = sum(self.costs_s) / len(self.costs_s)
        return sum((cost_s - mean_s) ** 2 for cost_s in self.costs_s) / len(self.costs_s) / mean_s**2
