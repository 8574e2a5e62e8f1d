"""Smooths the quantities of successive observations by DRS's smoothing: exponential, or the mean of a window.

D(n) = alpha D(n-1) + (1 - alpha) d(n), alpha in [0, 1) or mean of the last w values

A missing value leaves the smoothed one as it was. Many quantities are smoothed at once, as arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from sluicegate.domain import Observation, OperatorObservation, Sojourn
from sluicegate.errors import BadInput

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Smoothing:
    """How to smooth: ``alpha`` (weight of the past) or, if set, a mean over the last ``window`` values.

    | alpha | values until 90% of a jump is seen |
    |-------|-------------------------------------|
    | 0     | 1                                   |
    | 0.5   | 4                                   |
    | 0.8   | 11                                  |
    """

    alpha: float = 0.5
    window: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.alpha < 1:
            raise BadInput(f"alpha is {self.alpha}: smoothing needs 0 <= alpha < 1")
        if self.window is not None and self.window < 1:
            raise BadInput(f"window is {self.window}: smoothing needs at least 1 value")


@dataclass(frozen=True, slots=True, eq=False)
class Smoothed:
    """Smoothed quantities. Inside the arrays NaN stands for "not measured yet"; it never leaves: see ``values``."""

    current: Floats = field(default_factory=lambda: np.empty(0))
    recent: tuple[Floats, ...] = ()

    def after(self, measured: Sequence[float | None], smoothing: Smoothing) -> Smoothed:
        """The state after one more measurement of every quantity.

        >>> half = Smoothing(alpha=0.5)
        >>> Smoothed().after([10.0, None], half).after([20.0, 3.0], half).after([None, None], half).values
        [15.0, 3.0]
        """
        fresh = np.array([np.nan if value is None else value for value in measured], dtype=np.float64)
        if smoothing.window is not None:
            recent = (*self.recent, fresh)[-smoothing.window :]
            return Smoothed(_mean_of_known(np.stack(recent), len(fresh), self.current), recent)
        if not len(self.current):
            return Smoothed(fresh)
        blended = smoothing.alpha * self.current + (1 - smoothing.alpha) * fresh
        kept = np.where(np.isnan(fresh), self.current, blended)
        return Smoothed(np.where(np.isnan(self.current), fresh, kept))

    @property
    def values(self) -> list[float | None]:
        """Plain numbers, ``None`` where nothing was ever measured."""
        plain = self.current.tolist()
        if not np.isnan(self.current).any():
            return list(plain)
        return [None if value != value else value for value in plain]


def _mean_of_known(recent: Floats, width: int, before: Floats) -> Floats:
    known = ~np.isnan(recent)
    count = known.sum(axis=0)
    past = before if len(before) == width else np.full(width, np.nan)
    mean: Floats = np.where(known, recent, 0.0).sum(axis=0) / np.maximum(count, 1)
    return np.where(count > 0, mean, past)


_PER_OPERATOR = 7
_WHOLE = 5


@dataclass(frozen=True, slots=True)
class Gauges:
    """All smoothed quantities of a pipeline whose operators are ``names``."""

    names: tuple[str, ...]
    smoothing: Smoothing = field(default_factory=Smoothing)
    smoothed: Smoothed = field(default_factory=Smoothed)

    def read(self, observation: Observation) -> tuple[Gauges, Observation]:
        """The next gauges, and the observation with its quantities smoothed; counts and batches pass as they are."""
        sojourn = observation.sojourn
        measured: list[float | None] = [observation.arrivals_per_s]
        measured += [None] * 4 if sojourn is None else [sojourn.mean_s, sojourn.p50_s, sojourn.p95_s, sojourn.p99_s]
        seen = observation.all_of(self.names)
        for o in seen:
            measured += (
                o.arrivals_per_s,
                o.service_per_s,
                o.arrival_scv,
                o.service_scv,
                o.utilisation,
                o.queue_rows,
                o.sojourn_s,
            )
        smoothed = self.smoothed.after(measured, self.smoothing)
        return replace(self, smoothed=smoothed), _filled(observation, self.names, seen, smoothed.values)


def _filled(
    observation: Observation, names: tuple[str, ...], seen: list[OperatorObservation], values: list[float | None]
) -> Observation:
    operators = {}
    for i, name in enumerate(names):
        at = _WHOLE + i * _PER_OPERATOR
        arrivals, service, arrival_scv, service_scv, utilisation, queue, sojourn_s = values[at : at + _PER_OPERATOR]
        operators[name] = OperatorObservation(
            arrivals,
            service,
            arrival_scv,
            service_scv,
            utilisation,
            queue,
            seen[i].backpressure,
            sojourn_s,
            seen[i].saturated_per_s,
            seen[i].instance_queues,
            seen[i].instance_per_s,
            seen[i].batches,
            seen[i].group_s,
            seen[i].hot_key,
        )
    mean_s = values[1]
    sojourn = None if mean_s is None else Sojourn(mean_s, values[2], values[3], values[4])
    return replace(observation, arrivals_per_s=values[0], sojourn=sojourn, operators=operators)
