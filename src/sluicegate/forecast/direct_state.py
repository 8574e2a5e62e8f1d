"""What the direct regressions hold, laid out in one flat vector: a memory is copied at once, its parts are views."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from sluicegate.forecast.recursive import Floats

RECENT = 15
MEANS, SCALES = 15, 11  # inputs of the regressions for mean and scale
MINUTES, HALF_HOURS = 60, 48  # places of an hour, where it has that many steps, and of a day
TOTAL, DAY, SLOT, FADING, HOUR = 0, 1, 2, 3, 5  # in the tally: where each is; of the fading means there are two


class Clock(NamedTuple):
    """Steps of an hour and of half an hour; slots of a day in the ring of past rates, and the steps of one slot."""

    hour: int
    half_hour: int
    day: int
    slot: int


class State(NamedTuple):
    """Everything the regressions hold; arrays by horizon first.

    ``tally``: all rates' sum, a day's mean, a slot's sum, the fading means, an hour's mean.
    ``hourly``: what the load usually is at each minute of the hour, over the hour's mean.
    """

    recent: Floats
    ring: Floats
    tally: Floats
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
    """How an hour and a day divide into steps: a slot is a step, or a minute where steps are shorter.

    >>> clock_of(60.0)
    Clock(hour=60, half_hour=30, day=1440, slot=1)
    """
    slot = max(1, round(60 / step_s))
    hour = max(1, round(3600 / step_s))
    return Clock(hour, max(1, hour // 2), max(1, round(86400 / step_s / slot)), slot)


def fresh(horizons: int, longest: int, clock: Clock) -> Floats:
    """Nothing seen: the mean starts at a blend of the last rate and the mean of five, errors at some 10%."""
    memory = np.zeros(_size(horizons, longest + 1, clock))
    state = laid_out(memory, horizons, longest + 1, clock)
    state.lively[:] = 0.08
    state.usual[:] = 0.01
    state.weights[:, 1], state.weights[:, 4] = 0.6, 0.4
    state.inverse[:] = np.eye(MEANS)  # a tenth of it took days to learn a slope: 0.4% dearer over weeks, 1% over hours
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
    return RECENT + clock.day + RECENT + 10 + minutes + horizons * per_horizon + held * per_step


@njit(cache=True)
def laid_out(memory: Floats, horizons: int, held: int, clock: Clock) -> State:
    """The parts of one flat vector, as views into it."""
    n, at = horizons, 0
    recent, at = memory[at : at + RECENT], at + RECENT
    ring, at = memory[at : at + clock.day + RECENT + 1], at + clock.day + RECENT + 1
    tally, lively, at = memory[at : at + 6], memory[at + 6 : at + 9], at + 9
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
        recent, ring, tally, lively, usual, weights, inverse, scale_weights, scale_inverse,
        hourly, phase, half_hours, levels, means, sds, inputs, scale_inputs,
    )  # fmt: skip
