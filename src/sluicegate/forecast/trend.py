"""A damped-trend forecaster (Holt, Gardner): extrapolates a rising or falling load from few values.

    level_t = alpha y_t + (1 - alpha)(level_{t-1} + phi slope_{t-1})
    slope_t = beta (level_t - level_{t-1}) + (1 - beta) phi slope_{t-1}
    mean_h  = level_t + (phi + phi^2 + ... + phi^h) slope_t
    var_h   = s^2 (1 + sum over j < h of (alpha + alpha beta phi_j)^2),  phi_j = phi + ... + phi^j

s^2 is the variance of the one-step errors, with exponential forgetting at the rate ``forget``, so that intervals soon
narrow again after a ramp has ended. Suited to horizons of seconds to a minute; it does not model seasons.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sluicegate.domain import Forecast
from sluicegate.domain.topology import require, require_number

_ENOUGH = 3


@dataclass(frozen=True, slots=True)
class TrendMemory:
    """Level, slope per step, variance of one-step errors, and the number of rates learned."""

    level: float = 0.0
    slope: float = 0.0
    variance: float = 0.0
    steps: int = 0


@dataclass(frozen=True, slots=True)
class Trend:
    """The forecaster. ``alpha`` and ``beta`` are the weights of new values, ``damping`` is phi.

    | forget | steps until a past error counts a tenth |
    |--------|-----------------------------------------|
    | 0.7    | 6                                       |
    | 0.85   | 14                                      |
    | 0.95   | 45                                      |

    >>> trend, memory = Trend(step_s=10.0), TrendMemory()
    >>> for rate in range(100, 200, 10):
    ...     memory = trend.learn(memory, float(rate))
    >>> forecast = trend.forecast(memory, 2)
    >>> forecast.mean_per_s.round().tolist()
    [197.0, 204.0]
    """

    step_s: float = 60.0
    alpha: float = 0.6
    beta: float = 0.4
    damping: float = 0.9
    forget: float = 0.85

    def __post_init__(self) -> None:
        require_number(self.step_s, "step_s", above=True)
        for what in ("alpha", "beta", "damping", "forget"):
            require(0 < getattr(self, what) <= 1, f"{what} is {getattr(self, what)}: give a share above 0, at most 1")

    @property
    def name(self) -> str:
        return "trend"

    def start(self) -> TrendMemory:
        return TrendMemory()

    def learn(self, memory: TrendMemory, rate_per_s: float) -> TrendMemory:
        """Update the memory with the rate of one more step."""
        require_number(rate_per_s, "rate")
        if memory.steps == 0:
            return TrendMemory(rate_per_s, 0.0, 0.0, 1)
        expected = memory.level + self.damping * memory.slope
        error = rate_per_s - expected
        level = expected + self.alpha * error
        slope = self.damping * memory.slope + self.alpha * self.beta * error
        forget = self.forget if memory.steps > 1 else 0.0
        variance = forget * memory.variance + (1 - forget) * error * error
        return TrendMemory(level, slope, variance, memory.steps + 1)

    def forecast(self, memory: TrendMemory, steps: int) -> Forecast | None:
        """The next ``steps`` steps; ``None`` before three rates are known."""
        if memory.steps < _ENOUGH or steps < 1:
            return None
        grown = np.cumsum(self.damping ** np.arange(1, steps + 1))
        mean = np.maximum(memory.level + grown * memory.slope, 0.0)
        passed_on = (self.alpha + self.alpha * self.beta * grown[:-1]) ** 2
        spread = np.sqrt(memory.variance * (1 + np.concatenate([[0.0], np.cumsum(passed_on)])))
        return Forecast(self.step_s, mean, spread)
