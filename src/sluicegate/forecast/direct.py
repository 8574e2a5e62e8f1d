"""Predicts mean and scale of a load some steps ahead, each by a recursive regression (direct: one pair per horizon).

All in units of the level L_t, the mean of the last 15 rates (floored at 2% of the mean of all):

    mean:   v_{t+h}/L_t = w'(1, v_t, v_{t-1}, v_{t-2}, mean of 5, mean of 15, yesterday, mean of a day, hourly)/L_t
            yesterday = mean of 15 x (the growth at the same clock time yesterday, clipped to 1/4 and 4)
            hourly = mean of 15 x (that minute of the hour's usual rate over those of the last 15, clipped to 1/4 and 4)
    scale:  log|error/L_t| = u'(1, log L_t/day's mean, volatility of the last 5 and 30 steps relative to the last 500,
            that long-run volatility, |v_t/L_t - 1|, past squared scores at this minute of the hour and this half hour
            of the day, (v_t/L_t - 1)+, (v_t/mean of 5 - 1)+, |log of yesterday's growth|)

x+ is max(x, 0): a load that has just risen is less predictable than one that has just fallen. Errors beyond 10 times
the usual size are clipped before they update the mean's weights. A load below its forecast counts a quarter in the
scale: margins protect against loads above it. The scale makes margins wide in a noisy hour, at a small load or at the
minute at which jobs start each hour, and narrow elsewhere.

The regressions are recursive least squares with forgetting (``least_squares``).
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from sluicegate.forecast.direct_state import HALF_HOURS, RECENT, Clock, State, laid_out
from sluicegate.forecast.least_squares import Floats, dot, regress

_FIVE = RECENT // 3  # steps of the short mean, and slots averaged on either side of the same time yesterday
# Steps remembered: one n steps old weighs e^-(n/MEMORY), and this many standardised errors are kept. Half: a day's
# shape is forgotten before it recurs. Double: a changed load pattern is learned later.
MEMORY = 5_000
_FORGET = 1 - 1 / MEMORY
# Deviations at which an error is clipped; larger ones do not widen margins. Half: usual bursts are not provisioned for.
# Double: one burst moves weights, and margins grow for loads that could not have been served anyway.
OUTLIER = 10.0
# Share of the level: smaller errors and changes count as equal. Half, double: matters only for nearly constant loads.
_LEAST = 0.003
# Multiple of the level at which errors and growth are clipped, or a load that starts at zero widens every later hour.
# Half: a fourfold rise each morning is underestimated. Double: one day at zero load is remembered as a huge rise.
_MOST = 4.0
# Learning rate of a minute of the hour (per hour) and of a half hour of the day (per step). A fifth: hourly jobs are
# learned later, 0.6% cheaper. Double: a single one widens that minute for hours.
_PHASE_RATE = 0.05
# Square root of the weight (a quarter) of downward errors in the scale. Half: too narrow margins over the first hours.
# Double: same weight as upward errors; a load that falls at times gets wide margins.
_BELOW = 0.5
_NOTHING = 1e-9  # level of a load that has not started: nothing is learned from it
_TO_SD = 1.6  # converts exp(mean of log|e|) to about a standard deviation; only sets the unit of the scores


@njit(cache=True)
def advanced(memory: Floats, t: int, rate: float, horizons: Floats, clock: Clock) -> tuple[Floats, Floats]:
    """The memory after the rate of step ``t`` (from 0), and each horizon's standardised error (0 where none is due)."""
    held = int(horizons[-1]) + 1
    after, scores = memory.copy(), np.zeros(len(horizons))
    state = laid_out(after, len(horizons), held, clock)
    _remember(state, t, rate, clock)
    now = t % held
    state.levels[now] = _level(state, t)
    for k in range(len(horizons)):
        ahead = int(horizons[k])
        if t >= ahead:
            scores[k] = _judge(state, t, k, (t - ahead) % held, rate, clock)
        _look_ahead(state, t, k, ahead, now, rate, clock)
    return after, scores


@njit(cache=True)
def outlook(
    memory: Floats, t: int, steps: int, horizons: Floats, clock: Clock, stretch: Floats
) -> tuple[Floats, Floats]:
    """Mean and deviation (times ``stretch``, by horizon) 1..``steps`` ahead of ``t``, interpolated between horizons."""
    held = int(horizons[-1]) + 1
    state = laid_out(memory, len(horizons), held, clock)
    ahead = np.arange(1.0, steps + 1.0)
    mean = np.interp(ahead, horizons, state.means[t % held])
    sd = np.interp(ahead, horizons, state.sds[t % held] * stretch)
    return mean, sd * np.sqrt(np.maximum(ahead / horizons[-1], 1.0))


@njit(cache=True)
def _remember(state: State, t: int, rate: float, clock: Clock) -> None:
    before = state.recent[RECENT - 1] if t > 0 else rate
    if t > 0:
        moved = min(abs(rate - before) / state.levels[(t - 1) % len(state.levels)], 1.0)
        state.lively[0] += (moved - state.lively[0]) / _FIVE
        state.lively[1] += (moved - state.lively[1]) / (2 * RECENT)
        state.lively[2] += 0.002 * (moved - state.lively[2])
    state.recent[:-1] = state.recent[1:].copy()
    state.recent[-1] = rate
    if t == 0:
        state.recent[:] = rate
    state.total[0] += rate
    state.day[0] += (rate - state.day[0]) / min(t + 1.0, float(clock.day * clock.slot))
    state.slot[0] = rate if t % clock.slot == 0 else state.slot[0] + rate
    state.hour[0] += (rate - state.hour[0]) / min(t + 1.0, float(clock.hour))
    _remember_minute(state, t, rate, clock)
    state.ring[(t // clock.slot) % len(state.ring)] = state.slot[0] / (t % clock.slot + 1)


@njit(cache=True)
def _remember_minute(state: State, t: int, rate: float, clock: Clock) -> None:
    if state.hour[0] <= _NOTHING:
        return
    minute, steps = _minute(state, t, clock), clock.hour // len(state.hourly)
    visits = t // clock.hour * steps + t % steps
    weight = max(_PHASE_RATE / steps, 1 / (visits + 2.0))
    state.hourly[minute] += weight * (min(rate / state.hour[0], 10.0) - state.hourly[minute])


@njit(cache=True)
def _level(state: State, t: int) -> float:
    seen = min(t + 1, RECENT)
    level: float = max(state.recent[RECENT - seen :].mean(), 0.02 * state.total[0] / (t + 1), _NOTHING)
    return level


@njit(cache=True)
def _judge(state: State, t: int, k: int, made: int, rate: float, clock: Clock) -> float:
    """Score the forecast made at slot ``made`` against this rate, and update the regressions with its error."""
    level = state.levels[made]
    if level <= _NOTHING:
        return 0.0
    off = rate - state.means[made, k]
    score: float = off / state.sds[made, k]
    surprise = min(max(score, -1.0), OUTLIER) ** 2
    minute, half_hour = _phases(state, t, clock)
    state.phase[k, minute] += _PHASE_RATE * (surprise - state.phase[k, minute])
    state.half_hours[k, half_hour] += _PHASE_RATE * (surprise - state.half_hours[k, half_hour])
    x = state.inputs[made, k]
    error = rate / level - dot(state.weights[k], x)
    most = OUTLIER * math.sqrt(state.usual[k])
    regress(state.weights[k], state.inverse[k], x, min(max(error, -most), most), _FORGET)
    state.usual[k] += 0.002 * (min(error * error, most * most) - state.usual[k])
    state.usual[k] = max(state.usual[k], 1e-8)
    s = state.scale_inputs[made, k]
    size = math.log(min(abs(off) / level, _MOST) + _LEAST)
    root = 1.0 if off > 0.0 else _BELOW
    error = size - dot(state.scale_weights[k], s)
    regress(state.scale_weights[k], state.scale_inverse[k], root * s, root * error, _FORGET)
    return score


@njit(cache=True)
def _minute(state: State, t: int, clock: Clock) -> int:
    return (t % clock.hour) * len(state.hourly) // clock.hour


@njit(cache=True)
def _phases(state: State, t: int, clock: Clock) -> tuple[int, int]:
    return _minute(state, t, clock), (t // clock.half_hour) % HALF_HOURS


@njit(cache=True)
def _look_ahead(state: State, t: int, k: int, ahead: int, now: int, rate: float, clock: Clock) -> None:
    level, recent = state.levels[now], state.recent
    fifteen, five = recent[RECENT - min(t + 1, RECENT) :].mean(), recent[RECENT - _FIVE :].mean()
    yesterday = _gain_yesterday(state, t, ahead, clock)
    x = state.inputs[now, k]
    x[0] = 1.0
    x[1], x[2], x[3] = rate / level, recent[RECENT - 2] / level, recent[RECENT - 3] / level
    x[4], x[5] = five / level, fifteen / level
    x[6], x[7] = fifteen * yesterday / level, state.day[0] / level
    x[8] = fifteen * _gain_hourly(state, t, ahead, clock) / level
    state.means[now, k] = min(max(dot(state.weights[k], x), 0.0), 10.0) * level
    minute, half_hour = _phases(state, t + ahead, clock)
    s, long_run = state.scale_inputs[now, k], math.log(state.lively[2] + _LEAST)
    against_day = math.log(level / max(state.day[0], 0.02 * state.total[0] / (t + 1), _NOTHING))
    s[0], s[1] = 1.0, min(max(against_day, -2.0), 2.0)
    s[2], s[3] = math.log(state.lively[0] + _LEAST) - long_run, math.log(state.lively[1] + _LEAST) - long_run
    s[4], s[5] = long_run, min(abs(rate / level - 1.0), 1.0)
    s[6], s[7] = _surprise(state.phase[k, minute]), _surprise(state.half_hours[k, half_hour])
    s[8], s[9] = min(max(rate / level - 1.0, 0.0), 1.0), min(max(rate / max(five, _NOTHING) - 1.0, 0.0), 1.0)
    s[10] = abs(math.log(yesterday))
    sd = _TO_SD * level * math.exp(min(max(dot(state.scale_weights[k], s), -6.0), 0.7))
    state.sds[now, k] = max(sd, 1e-12)


@njit(cache=True)
def _surprise(mean_square: float) -> float:
    return 0.5 * math.log((0.1 + mean_square) / 1.1)


@njit(cache=True)
def _gain_yesterday(state: State, t: int, ahead: int, clock: Clock) -> float:
    """Yesterday's rate around the time ``ahead`` of now, over yesterday's 15 slots up to now; 1 on the first day."""
    then, size = t // clock.slot - clock.day, len(state.ring)
    if then < 0 or clock.day <= RECENT + _FIVE:
        return 1.0
    base, count = 0.0, 0
    for i in range(max(0, then - RECENT + 1), then + 1):
        base += state.ring[i % size]
        count += 1
    base /= count
    target, total, near = (t + ahead) // clock.slot - clock.day, 0.0, 0
    for i in range(max(0, target - _FIVE), min(target + _FIVE, t // clock.slot) + 1):
        total += state.ring[i % size]
        near += 1
    if base <= 0.0 or near == 0:
        return 1.0
    return min(max(total / near / base, 1 / _MOST), _MOST)


@njit(cache=True)
def _gain_hourly(state: State, t: int, ahead: int, clock: Clock) -> float:
    """Usual rate at the minute of the hour ``ahead`` of now, over that of the last 15 steps; 1 in the first hour."""
    if t < clock.hour:
        return 1.0
    base = 0.0
    for i in range(RECENT):
        base += state.hourly[_minute(state, t - i, clock)] / RECENT
    if base <= 0.0:
        return 1.0
    return float(min(max(state.hourly[_minute(state, t + ahead, clock)] / base, 1 / _MOST), _MOST))
