"""sluicegate's own forecast: regressions for mean and scale, and margins that past forecasts have earned.

    upper(level, h) = mean_h + q(level) sd_h

mean_h and sd_h come from `direct` (one regression each per horizon of ``HORIZONS``, interpolated between them, the
deviation growing with the root of h beyond the last), q from the pool of standardised errors of `conformal`. One pool
speaks for all steps of a forecast: that of the first horizon not below the last step; the deviations of the other
horizons are scaled so that their own 99% quantile is met.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sluicegate.domain import Forecast
from sluicegate.domain.topology import require_number
from sluicegate.forecast.conformal import ScorePool, achieved, announced, empty_pool, published, with_scores
from sluicegate.forecast.direct import advanced, outlook
from sluicegate.forecast.direct_state import Clock, clock_of, fresh
from sluicegate.forecast.recursive import Floats

HORIZONS = (1, 2, 3, 5, 8, 12)
_ENOUGH = 3  # rates before the first forecast
# Steps before the first score counts: what the regressions got wrong while they knew next to nothing would speak for
# days. Cost in cycles told 99.5%, over 48 stretches of four hours from eight traces (some 2% late in all): from step 30
# on 1.56, from 60 or 120 on 1.53. Over 23 weeks at one price, against 30: at 99.5% within 0.3%, at 99.9% both cost 0.3%
# more, since a wild start stands in for a tail that nobody has seen yet.
_SPEAKING = 60


@dataclass(frozen=True, eq=False, slots=True)
class CalibratedMemory:
    """What was learned of ``steps`` rates."""

    steps: int
    state: Floats
    pool: ScorePool


@dataclass(frozen=True)
class Calibrated:
    """A forecaster whose announced quantiles hold.

    >>> forecaster = Calibrated(step_s=60.0)
    >>> memory = forecaster.start()
    >>> for _ in range(50):
    ...     memory = forecaster.learn(memory, 100.0)
    >>> forecast = forecaster.forecast(memory, 3)
    >>> forecast.mean_per_s.round().tolist()
    [100.0, 100.0, 100.0]
    """

    step_s: float = 60.0

    def __post_init__(self) -> None:
        require_number(self.step_s, "step_s", above=True)

    @property
    def name(self) -> str:
        return "calibrated"

    def start(self) -> CalibratedMemory:
        state = fresh(len(HORIZONS), HORIZONS[-1], self._clock)
        return CalibratedMemory(0, state, empty_pool(len(HORIZONS)))

    def learn(self, memory: CalibratedMemory, rate_per_s: float) -> CalibratedMemory:
        """Take in the rate of one more step."""
        require_number(rate_per_s, "rate")
        state, scores = advanced(memory.state, memory.steps, float(rate_per_s), _AHEAD, self._clock)
        judged = memory.steps >= _SPEAKING
        return CalibratedMemory(memory.steps + 1, state, with_scores(memory.pool, scores) if judged else memory.pool)

    def forecast(self, memory: CalibratedMemory, steps: int) -> Forecast | None:
        """The next ``steps`` steps; ``None`` before three rates are known."""
        if memory.steps < _ENOUGH or steps < 1:
            return None
        speaks = min(bisect_left(HORIZONS, steps), len(HORIZONS) - 1)
        stretch = _tail_ratio(memory.pool, speaks)
        mean, sd = outlook(memory.state, memory.steps - 1, steps, _AHEAD, self._clock, stretch)
        return Forecast(self.step_s, mean, sd, published(memory.pool, speaks))

    def coverage(self, memory: CalibratedMemory) -> dict[int, float] | None:
        """The share of steps at which the 99% quantile held, by steps ahead; ``None`` before any was judged."""
        if not memory.pool.number:
            return None
        return dict(zip(HORIZONS, achieved(memory.pool).tolist(), strict=True))

    @cached_property
    def _clock(self) -> Clock:
        return clock_of(self.step_s)


def _tail_ratio(pool: ScorePool, speaks: int) -> Floats:
    own = announced(pool)
    if own[speaks] <= 0:
        return np.ones(len(own))
    ratio: Floats = np.minimum(np.maximum(own / own[speaks], 0.5), 2.0)
    return ratio


_AHEAD: Floats = np.array(HORIZONS, dtype=np.float64)
