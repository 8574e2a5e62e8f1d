"""Count, sum and sum of squares of a quantity."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tally:
    """Running sums, enough for a mean and a variance.

    >>> Tally().plus(1.0).plus(3.0).scv
    0.25
    """

    count: int = 0
    total: float = 0.0
    squares: float = 0.0

    def plus(self, value: float) -> Tally:
        return Tally(self.count + 1, self.total + value, self.squares + value * value)

    @property
    def scv(self) -> float | None:
        """Variance over squared mean; needs two values and a mean above zero."""
        if self.count < 2 or self.total <= 0:
            return None
        mean = self.total / self.count
        return max(self.squares / self.count - mean * mean, 0.0) / (mean * mean)
