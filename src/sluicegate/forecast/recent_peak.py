"""Recent peak: forecasts the largest rate of the last w steps plus a margin, for every horizon (a peer).

    mean = max(r_{t-w+1} .. r_t) (1 + x)          sd_h = mean x deviation of r_{s+h}/mean_s over the recent past s

``mean`` is an upper cover rather than an expectation, so it lies above most later rates; the deviation of the ratios
widens it further where recent rates were volatile.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from sluicegate.domain import Forecast
from sluicegate.domain.topology import require, require_number

Floats = NDArray[np.float64]
_LEAST_ERRORS = 10  # fewer ratios give no usable estimate of their deviation
_LARGEST_RATIO = 10.0  # cap: one burst after near-zero load must not inflate every later forecast


@dataclass(frozen=True, slots=True)
class RecentPeakForecast:
    """The forecaster. ``steps`` is w, ``margin`` is x; ``history`` is the number of past steps in the deviation.

    >>> peak = RecentPeakForecast(steps=5, margin=0.2)
    >>> memory = peak.start()
    >>> for rate in [90.0, 100.0] * 10:
    ...     memory = peak.learn(memory, rate)
    >>> peak.forecast(memory, 2).mean_per_s.tolist()
    [120.0, 120.0]
    """

    step_s: float = 60.0
    steps: int = 5
    margin: float = 0.2
    history: int = 120

    def __post_init__(self) -> None:
        require_number(self.step_s, "step_s", above=True)
        require(self.steps >= 1, f"steps is {self.steps}: look back at least 1 step")
        require_number(self.margin, "margin")
        require(self.history >= _LEAST_ERRORS, f"history is {self.history}: give at least {_LEAST_ERRORS} steps")

    @property
    def name(self) -> str:
        return "recent-peak"

    def start(self) -> Floats:
        return np.empty(0)

    def learn(self, memory: Floats, rate_per_s: float) -> Floats:
        require_number(rate_per_s, "rate_per_s")
        return np.append(memory[-(self.history + self.steps - 1) :], rate_per_s)

    def forecast(self, memory: Floats, steps: int) -> Forecast | None:
        require(steps >= 1, f"steps is {steps}: forecast at least 1")
        if len(memory) < self.steps + _LEAST_ERRORS:
            return None
        announced = sliding_window_view(memory, self.steps).max(axis=1) * (1 + self.margin)
        actual = memory[self.steps - 1 :]
        relative = np.empty(steps)
        known = 0.0
        for h in range(1, steps + 1):
            known = _deviation(announced[:-h], actual[h:], known)
            relative[h - 1] = known
        mean = np.full(steps, announced[-1])
        return Forecast(self.step_s, mean, mean * relative)


def _deviation(announced: Floats, actual: Floats, otherwise: float) -> float:
    """Deviation of actual/announced, or that of a shorter horizon if there are too few ratios."""
    some = announced > 0
    if np.count_nonzero(some) < 2:
        return otherwise
    ratios = np.minimum(actual[some], _LARGEST_RATIO * announced[some]) / announced[some]
    return float(np.std(ratios, ddof=1))
