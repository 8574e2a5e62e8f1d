"""A load forecast with its uncertainty.

numpy and scipy are imported only where they are used: commands that only read a run import this module too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def _no_scores() -> NDArray[np.float64]:
    import numpy as np

    return np.empty(0)


@dataclass(frozen=True, eq=False, slots=True)
class Forecast:
    """External rate at the coming steps: element ``h`` is ``h + 1`` steps of ``step_s`` ahead.

    ``scores`` are sorted standardised errors ``(actual - mean)/sd`` of past forecasts; without them errors are
    taken as normal.
    """

    step_s: float
    mean_per_s: NDArray[np.float64]
    sd_per_s: NDArray[np.float64]
    scores: NDArray[np.float64] = field(default_factory=_no_scores)

    def __post_init__(self) -> None:
        if len(self.mean_per_s) != len(self.sd_per_s) or not len(self.mean_per_s):
            raise ValueError("a forecast needs as many deviations as means, and at least one")

    def upper_per_s(self, level: float) -> NDArray[np.float64]:
        """The rate not exceeded with probability ``level``, step by step.

        >>> import numpy as np
        >>> f = Forecast(60.0, np.array([100.0]), np.array([10.0]))
        >>> f.upper_per_s(0.975).round(1).tolist()
        [119.6]
        """
        upper: NDArray[np.float64] = (self.mean_per_s + self._score(level) * self.sd_per_s).clip(0.0)
        return upper

    def peak_per_s(self, level: float) -> float:
        """The largest of the steps' ``level`` quantiles."""
        return float(self.upper_per_s(level).max())

    def _score(self, level: float) -> float:
        n = len(self.scores)
        if n == 0:
            from scipy.special import ndtri

            return float(ndtri(level))
        # split conformal: the ceil((n+1) q)-th smallest score covers a new one with probability at least q
        rank = math.ceil((n + 1) * level)
        return float(self.scores[min(max(rank, 1), n) - 1])
