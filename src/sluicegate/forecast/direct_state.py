"""What the regressions of ``direct`` remember: one flat vector, so that it is copied in one operation, and its parts.

The parts are views into the vector, by name.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from sluicegate.forecast.least_squares import Floats

# Steps of the level. Half: it follows noise. Double: it lags behind a morning.
RECENT = 15
MEANS, SCALES = 9, 11  # inputs of the regressions for mean and scale
MINUTES, HALF_HOURS = 60, 48  # phases of an hour (fewer if it has fewer steps) and of a day


class Clock(NamedTuple):
    """Steps per hour and per half hour; slots per day in the ring of past rates, and steps per slot."""

    hour: int
    half_hour: int
    day: int
    slot: int


class State(NamedTuple):
    """All state of the regressions; arrays are indexed by horizon first.

    Single numbers: ``total``, the sum of all rates; ``day`` and ``hour``, the mean rate over one; ``slot``, the sum of
    the current slot. ``hourly``: the usual load at each minute of the hour, over the hour's mean.
    """

    recent: Floats
    ring: Floats
    total: Floats
    day: Floats
    slot: Floats
    hour: Floats
    lively: Floats
    usual: Floats
    weights: Floats
    inverse: Floats
    scale_weights: Floats
    scale_inverse: Floats
    hourly: Floats
    phase: Floats
    half_hours: Floats
    levels: Floats
    means: Floats
    sds: Floats
    inputs: Floats
    scale_inputs: Floats


def clock_of(step_s: float) -> Clock:
    """Divides an hour and a day into steps; a slot is one step, or a minute if steps are shorter.

    >>> clock_of(60.0)
    Clock(hour=60, half_hour=30, day=1440, slot=1)
    """
    slot = max(1, round(60 / step_s))
    hour = max(1, round(3600 / step_s))
    return Clock(hour, max(1, hour // 2), max(1, round(86400 / step_s / slot)), slot)


def fresh(horizons: int, longest: int, clock: Clock) -> Floats:
    """The initial memory: the mean is a blend of the last rate and the mean of five, errors are about 10%.

    Before any is known, errors are clipped as if they were usually 2%: the growth of one early jump would be forecast
    for a hundred steps. Where errors are larger the clipping gives way within some 20 steps.
    """
    memory = np.zeros(_size(horizons, longest + 1, clock))
    state = laid_out(memory, horizons, longest + 1, clock)
    state.lively[:] = 0.08
    state.usual[:] = 0.0003
    state.weights[:, 1], state.weights[:, 4] = 0.6, 0.4
    state.inverse[:] = np.eye(MEANS)  # at a tenth slopes took days to learn: costs 0.4% up over weeks, 1% over hours
    state.scale_weights[:, 0] = -2.5
    state.scale_inverse[:] = 0.1 * np.eye(SCALES)
    state.scale_inverse[:, 0, 0] = 1.0
    for ones in (state.hourly, state.phase, state.half_hours, state.levels, state.sds):
        ones[:] = 1.0
    return memory


def _size(horizons: int, held: int, clock: Clock) -> int:
    minutes = min(clock.hour, MINUTES)
    per_horizon = 1 + MEANS * (1 + MEANS) + SCALES * (1 + SCALES) + minutes + HALF_HOURS
    per_step = 1 + horizons * (2 + MEANS + SCALES)
    return RECENT + clock.day + RECENT + 8 + minutes + horizons * per_horizon + held * per_step


@njit(cache=True)
def laid_out(memory: Floats, horizons: int, held: int, clock: Clock) -> State:
    """The parts of one flat vector, as views into it."""
    n, at = horizons, 0
    recent, at = memory[at : at + RECENT], at + RECENT
    ring, at = memory[at : at + clock.day + RECENT + 1], at + clock.day + RECENT + 1
    total, day, at = memory[at : at + 1], memory[at + 1 : at + 2], at + 2
    slot, hour, at = memory[at : at + 1], memory[at + 1 : at + 2], at + 2
    lively, at = memory[at : at + 3], at + 3
    usual, at = memory[at : at + n], at + n
    weights, at = memory[at : at + n * MEANS].reshape(n, MEANS), at + n * MEANS
    inverse, at = memory[at : at + n * MEANS**2].reshape(n, MEANS, MEANS), at + n * MEANS**2
    scale_weights, at = memory[at : at + n * SCALES].reshape(n, SCALES), at + n * SCALES
    scale_inverse, at = memory[at : at + n * SCALES**2].reshape(n, SCALES, SCALES), at + n * SCALES**2
    minutes = min(clock.hour, MINUTES)
    hourly, at = memory[at : at + minutes], at + minutes
    phase, at = memory[at : at + n * minutes].reshape(n, minutes), at + n * minutes
    half_hours, at = memory[at : at + n * HALF_HOURS].reshape(n, HALF_HOURS), at + n * HALF_HOURS
    levels, at = memory[at : at + held], at + held
    means, at = memory[at : at + held * n].reshape(held, n), at + held * n
    sds, at = memory[at : at + held * n].reshape(held, n), at + held * n
    inputs, at = memory[at : at + held * n * MEANS].reshape(held, n, MEANS), at + held * n * MEANS
    scale_inputs = memory[at : at + held * n * SCALES].reshape(held, n, SCALES)
    return State(
        recent, ring, total, day, slot, hour, lively, usual, weights, inverse, scale_weights, scale_inverse,
        hourly, phase, half_hours, levels, means, sds, inputs, scale_inputs,
    )  # fmt: skip
