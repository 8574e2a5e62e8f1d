"""Forecasts the same phase of past seasons, scaled to the current level (seasonal naive with a level correction).

    profile_p <- profile_p + weight (r_t - profile_p)      at the phase p of step t, after the first season
    mean_{t+h} = profile_{t+h} x level,   level = sum of the last l rates / sum of their profile values
    sd_h^2 = mean of (r_s - profile_s level_{s-h})^2 over the recent past s

The profile is read as the mean of 2b + 1 neighbouring phases, as a single minute of a day is noisy. Needs one season
and ``level_steps`` + 10 steps before the first forecast.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sluicegate.domain import Forecast
from sluicegate.domain.topology import require, require_number

Floats = NDArray[np.float64]
_LEAST_ERRORS = 10  # fewer errors give no usable estimate of their deviation
_LARGEST_LEVEL = 10.0  # cap: a profile near zero must not amplify a burst


@dataclass(frozen=True, eq=False, slots=True)
class SeasonalMemory:
    """The profile by phase, steps learned, and recent rates with the profile values expected for them."""

    profile: Floats
    learned: int
    actual: Floats
    expected: Floats


@dataclass(frozen=True, slots=True)
class Seasonal:
    """The forecaster. ``level_steps`` is l, ``blur`` is b, ``history`` the number of past errors in the deviation.

    >>> daily = Seasonal(season_s=240.0, step_s=60.0, level_steps=2, blur=0)
    >>> memory = daily.start()
    >>> for rate in [10.0, 20.0, 40.0, 20.0] * 6 + [11.0, 22.0]:
    ...     memory = daily.learn(memory, rate)
    >>> daily.forecast(memory, 2).mean_per_s.round(3).tolist()
    [44.0, 22.0]
    """

    step_s: float = 60.0
    season_s: float = 86_400.0
    weight: float = 0.5
    level_steps: int = 5
    blur: int = 5
    history: int = 120

    def __post_init__(self) -> None:
        require_number(self.step_s, "step_s", above=True)
        require_number(self.season_s, "season_s", above=True)
        require(self.season_steps >= 2, f"season_s is {self.season_s:g}: give at least 2 steps of {self.step_s:g} s")
        require(0 < self.weight <= 1, f"weight is {self.weight}: give a share above 0, at most 1")
        require(self.level_steps >= 1, f"level_steps is {self.level_steps}: give at least 1")
        require(0 <= 2 * self.blur < self.season_steps, f"blur is {self.blur}: give 0 to below half a season")
        require(self.history >= _LEAST_ERRORS, f"history is {self.history}: give at least {_LEAST_ERRORS} steps")

    @property
    def name(self) -> str:
        return "seasonal"

    @property
    def season_steps(self) -> int:
        return round(self.season_s / self.step_s)

    def start(self) -> SeasonalMemory:
        return SeasonalMemory(np.zeros(self.season_steps), 0, np.empty(0), np.empty(0))

    def learn(self, memory: SeasonalMemory, rate_per_s: float) -> SeasonalMemory:
        require_number(rate_per_s, "rate_per_s")
        phase = memory.learned % self.season_steps
        profile = memory.profile.copy()
        if memory.learned < self.season_steps:
            profile[phase] = rate_per_s
            return SeasonalMemory(profile, memory.learned + 1, memory.actual, memory.expected)
        kept = max(self.history + self.level_steps, self.blur + 1) - 1
        actual = np.append(memory.actual[-kept:], rate_per_s)
        expected = np.append(memory.expected[-kept:], self._read(memory.profile, phase, 1))
        if memory.learned - self.blur >= self.season_steps:
            # delayed by the blur: blurred reads ahead of this phase must not mix in this season's rates
            done = (phase - self.blur) % self.season_steps
            profile[done] += self.weight * (actual[-1 - self.blur] - profile[done])
        return SeasonalMemory(profile, memory.learned + 1, actual, expected)

    def forecast(self, memory: SeasonalMemory, steps: int) -> Forecast | None:
        require(steps >= 1, f"steps is {steps}: forecast at least 1")
        if len(memory.actual) < self.level_steps + _LEAST_ERRORS:
            return None
        levels = self._levels(memory)
        mean = self._read(memory.profile, memory.learned % self.season_steps, steps) * levels[-1]
        # levels[i] is known at step i + level_steps - 1
        actual, expected = memory.actual[self.level_steps - 1 :], memory.expected[self.level_steps - 1 :]
        sd = np.empty(steps)
        for h in range(1, steps + 1):
            errors = actual[h:] - expected[h:] * levels[:-h]
            sd[h - 1] = np.sqrt(np.mean(errors**2)) if len(errors) >= _LEAST_ERRORS else sd[max(h - 2, 0)]
        return Forecast(self.step_s, mean, sd)

    def _levels(self, memory: SeasonalMemory) -> Floats:
        """Rates over profile, in windows of ``level_steps``; 1 where the profile is zero."""
        window = np.ones(self.level_steps)
        profile = np.convolve(memory.expected, window, "valid")
        rates = np.minimum(np.convolve(memory.actual, window, "valid"), _LARGEST_LEVEL * profile)
        return np.divide(rates, profile, out=np.ones_like(profile), where=profile > 0)

    def _read(self, profile: Floats, phase: int, steps: int) -> Floats:
        """The blurred profile of ``steps`` phases from ``phase`` on."""
        width = 2 * self.blur + 1
        around = np.arange(phase - self.blur, phase + self.blur + steps) % self.season_steps
        return np.convolve(profile[around], np.full(width, 1 / width), "valid")
