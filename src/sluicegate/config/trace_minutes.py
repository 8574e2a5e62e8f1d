"""Converts a trace of any step to one value a minute, and lists every repair.

sorted by time; values of one and the same time averaged
step = median difference;  a difference above 1.5 steps is a gap
step below a minute: the mean of each minute;  else: linear interpolation at every full step of a minute
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sluicegate.errors import BadInput

Floats = NDArray[np.float64]

MINUTE_S = 60.0
_MOST_MINUTES = 5_000_000  # some 9.5 years
_MOST_MADE_UP = 0.5  # largest share of the time span that may be filled by interpolation


@dataclass(frozen=True, eq=False, slots=True)
class Minutes:
    """One value a minute; ``step_s`` is what the trace had; ``repairs`` say what was done to it."""

    values: Floats
    step_s: float
    repairs: tuple[str, ...]


def to_minutes(times_s: Floats, values: Floats) -> Minutes:
    """The trace minute by minute.

    >>> found = to_minutes(np.array([0.0, 300.0, 600.0]), np.array([10.0, 20.0, 20.0]))
    >>> found.values.tolist(), found.repairs
    ([10.0, 12.0, 14.0, 16.0, 18.0, 20.0, 20.0, 20.0, 20.0, 20.0, 20.0], ('step 300 s: interpolated to minutes',))
    """
    times_s, values, repairs = _in_order(times_s, values)
    if len(times_s) < 2:
        raise BadInput("only one time: a trace needs at least two rows")
    differences = np.diff(times_s)
    step_s = float(np.median(differences))
    if step_s <= 0.9 * MINUTE_S:
        times_s, values = _averaged(times_s, values)
        repairs = (*repairs, f"step {step_s:g} s: averaged to minutes")
    repairs = (*repairs, *_gaps(times_s, max(step_s, MINUTE_S)))
    span = times_s[-1] - times_s[0]
    if span / MINUTE_S > _MOST_MINUTES:
        raise BadInput(f"spans {span / 86400 / 365:.3g} years: cut it, or check the unit of the time column")
    if step_s > 1.1 * MINUTE_S:
        repairs = (*repairs, f"step {step_s:g} s: interpolated to minutes")
    grid = times_s[0] + MINUTE_S * np.arange(int(span / MINUTE_S + 1e-6) + 1)
    return Minutes(np.interp(grid, times_s, values), step_s, repairs)


def _in_order(times_s: Floats, values: Floats) -> tuple[Floats, Floats, tuple[str, ...]]:
    repairs: tuple[str, ...] = ()
    late = int(np.count_nonzero(np.diff(times_s) < 0))
    if late:
        order = np.argsort(times_s, kind="stable")
        times_s, values = times_s[order], values[order]
        repairs = (f"{late} {_rows(late)} earlier than the one before: sorted by time",)
    first = np.concatenate(([True], np.diff(times_s) > 0))
    twice = int(len(times_s) - np.count_nonzero(first))
    if twice:
        starts = np.flatnonzero(first)
        counts = np.diff(np.append(starts, len(values)))
        times_s, values = times_s[starts], np.add.reduceat(values, starts) / counts
        repairs = (*repairs, f"{twice} {_rows(twice)} with the time of another: averaged with it")
    return times_s, values, repairs


def _averaged(times_s: Floats, values: Floats) -> tuple[Floats, Floats]:
    minute = np.floor((times_s - times_s[0]) / MINUTE_S + 1e-6)
    starts = np.flatnonzero(np.concatenate(([True], np.diff(minute) > 0)))
    counts = np.diff(np.append(starts, len(values)))
    means: Floats = np.add.reduceat(values, starts) / counts
    return times_s[0] + MINUTE_S * minute[starts], means


def _gaps(times_s: Floats, step_s: float) -> tuple[str, ...]:
    differences = np.diff(times_s)
    wide = differences[differences > 1.5 * step_s]
    if not len(wide):
        return ()
    missing = int(np.sum(np.round(wide / step_s) - 1))
    share = float(np.sum(wide - step_s)) / float(times_s[-1] - times_s[0])
    if share > _MOST_MADE_UP:
        raise BadInput(
            f"{len(wide)} gaps make up {share:.0%} of its time: fill them, cut the trace, or check the time column"
        )
    return (
        f"{len(wide)} {'gap' if len(wide) == 1 else 'gaps'}, {missing} values missing, "
        f"the longest {float(wide.max()) / MINUTE_S:g} min: filled by interpolation",
    )


def _rows(count: int) -> str:
    return "row" if count == 1 else "rows"
