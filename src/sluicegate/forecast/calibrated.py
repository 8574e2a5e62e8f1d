"""sluicegate's own forecaster: regressions for mean and scale, with quantiles calibrated on past forecast errors.

    upper(level, h) = mean_h + q(level) sd_h

mean_h and sd_h come from `direct` (one regression each per horizon of ``HORIZONS``, interpolated between them, the
deviation growing with the root of h beyond the last), q from a pool of standardised errors. One pool
is used for all steps of a forecast: that of the first horizon not below the last step; the deviations of the other
horizons are scaled so that their own 99% quantile is met.

Conformal scores are the errors of past forecasts divided by their predicted deviations.

Split conformal on a sliding window of ``MEMORY`` scores: the ceil((n+1) q)-th smallest of the last n is not exceeded by
the next one with probability q, whatever their distribution, as long as it does not change. For the case that it does,
the achieved coverage of the announced ``TRACKED`` level corrects the positive scores by a factor e^g (adaptive
conformal inference):

    g <- g + (missed - 1/BLOCK)/BLOCK,   missed = 1 if the score exceeded the announced quantile, else 0

An error beyond ``OUTLIER`` deviations counts as a miss, but does not change the margins: no realistic number of
machines would have served it, and wider margins would cost all the time without covering the next such error.

The pool initially holds the scores of a Laplace distribution, whose tails are heavier than the normal's.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numba import njit

from sluicegate.domain import Forecast
from sluicegate.domain.topology import require_number
from sluicegate.forecast.direct import MEMORY, OUTLIER, advanced, outlook
from sluicegate.forecast.direct_state import Clock, clock_of, fresh
from sluicegate.forecast.least_squares import Floats

# One score in BLOCK exceeds the tracked quantile. The pool starts with BLOCK Laplace scores, ignores the first BLOCK of
# its own, is re-sorted every BLOCK scores, and a miss raises the log correction by about 1/BLOCK.
# Half: first bursts set the margin. Double: margins learn later.
BLOCK = 100
TRACKED = 1 - 1 / BLOCK


@dataclass(frozen=True, eq=False, slots=True)
class ScorePool:
    """Scores by horizon (rows). The first ``waiting`` columns of ``fresh`` are not yet merged into ``ordered``."""

    kept: Floats
    ordered: Floats
    fresh: Floats
    waiting: int
    tracked: Floats
    correction: Floats
    misses: Floats
    number: int


def empty_pool(horizons: int) -> ScorePool:
    """The pool before the first score."""
    level = (np.arange(BLOCK) + 0.5) / BLOCK
    laplace = 0.8 * np.sign(level - 0.5) * -np.log(2 * np.minimum(level, 1 - level))
    kept = np.repeat(laplace[None, :], horizons, axis=0)
    nothing = np.zeros(horizons)
    fresh = np.zeros((horizons, BLOCK))
    return ScorePool(kept, kept, fresh, 0, _quantile(kept, TRACKED), nothing, nothing, 0)


def with_scores(pool: ScorePool, scores: Floats) -> ScorePool:
    """The pool with one more score for each horizon; it is re-sorted every ``BLOCK`` scores."""
    fresh, correction, misses = _tracked(pool.fresh, pool.waiting, scores, pool.tracked, pool.correction, pool.misses)
    kept, ordered, tracked, waiting = pool.kept, pool.ordered, pool.tracked, pool.waiting + 1
    if waiting == BLOCK:
        kept = np.concatenate((kept, fresh), axis=1)[:, -MEMORY:]
        ordered, waiting = np.sort(kept, axis=1), 0
        tracked = _quantile(ordered, TRACKED)
    return ScorePool(kept, ordered, fresh, waiting, tracked, correction, misses, pool.number + 1)


def announced(pool: ScorePool) -> Floats:
    """The ``TRACKED`` quantile of the next score, by horizon."""
    quantiles: Floats = pool.tracked * np.exp(pool.correction)
    return quantiles


def published(pool: ScorePool, horizon: int) -> Floats:
    """The sorted scores of one horizon, corrected by the achieved coverage."""
    return _stretched(pool.ordered[horizon], pool.correction[horizon])


def achieved(pool: ScorePool) -> Floats:
    """The share of steps at which the announced ``TRACKED`` quantile was not exceeded, by horizon.

    >>> achieved(with_scores(empty_pool(1), np.array([0.5]))).tolist()
    [1.0]
    """
    coverage: Floats = 1 - pool.misses / max(pool.number, 1)
    return coverage


def _quantile(ordered: Floats, level: float) -> Floats:
    n = ordered.shape[1]
    found: Floats = ordered[:, min(max(math.ceil((n + 1) * level), 1), n) - 1].copy()
    return found


@njit(cache=True)
def _stretched(ordered: Floats, correction: float) -> Floats:
    stretched, factor = ordered.copy(), math.exp(correction)
    for i in range(len(ordered) - 1, -1, -1):
        if ordered[i] <= 0:
            break
        stretched[i] = ordered[i] * factor
    return stretched


@njit(cache=True)
def _tracked(
    fresh: Floats, waiting: int, scores: Floats, tracked: Floats, correction: Floats, misses: Floats
) -> tuple[Floats, Floats, Floats]:
    fresh, correction, misses = fresh.copy(), correction.copy(), misses.copy()
    for k in range(len(scores)):
        missed = 1.0 if scores[k] > tracked[k] * math.exp(correction[k]) else 0.0
        misses[k] += missed
        if scores[k] <= OUTLIER:
            fresh[k, waiting] = scores[k]
            correction[k] += (missed - 1 / BLOCK) / BLOCK
        else:
            fresh[k, waiting] = 0.0  # about the median of all scores: hardly moves an upper quantile
    return fresh, correction, misses


# Steps ahead with a regression of their own. Fewer: less accurate steps in between. More: more computing time.
HORIZONS = (1, 2, 3, 5, 8, 12)


@dataclass(frozen=True, eq=False, slots=True)
class CalibratedMemory:
    """Regression state and score pool after ``steps`` rates."""

    steps: int
    state: Floats
    pool: ScorePool


@dataclass(frozen=True)
class Calibrated:
    """A forecaster whose quantiles are calibrated to their nominal coverage.

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
        """Update the memory with the rate of one more step."""
        require_number(rate_per_s, "rate")
        state, scores = advanced(memory.state, memory.steps, float(rate_per_s), _AHEAD, self._clock)
        judged = memory.steps >= BLOCK  # early errors reflect untrained regressions
        return CalibratedMemory(memory.steps + 1, state, with_scores(memory.pool, scores) if judged else memory.pool)

    def forecast(self, memory: CalibratedMemory, steps: int) -> Forecast | None:
        """The next ``steps`` steps; ``None`` before a rate is known."""
        if memory.steps < 1 or steps < 1:
            return None
        horizon = min(bisect_left(HORIZONS, steps), len(HORIZONS) - 1)
        stretch = _tail_ratio(memory.pool, horizon)
        mean, sd = outlook(memory.state, memory.steps - 1, steps, _AHEAD, self._clock, stretch)
        return Forecast(self.step_s, mean, sd, published(memory.pool, horizon))

    def coverage(self, memory: CalibratedMemory) -> dict[int, float] | None:
        """The share of steps within the 99% quantile, by steps ahead; ``None`` before the first score."""
        if not memory.pool.number:
            return None
        return dict(zip(HORIZONS, achieved(memory.pool).tolist(), strict=True))

    @cached_property
    def _clock(self) -> Clock:
        return clock_of(self.step_s)


def _tail_ratio(pool: ScorePool, horizon: int) -> Floats:
    own = announced(pool)
    if own[horizon] <= 0:
        return np.ones(len(own))
    ratio: Floats = np.minimum(np.maximum(own / own[horizon], 0.5), 2.0)
    return ratio


_AHEAD: Floats = np.array(HORIZONS, dtype=np.float64)
