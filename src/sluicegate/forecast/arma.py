"""ARMA forecasts with their variances (uncertainty-aware VM scheduling, Eq 9 to 13).

The order is chosen by AIC on the first window of 100 values; a sliding window of the last 100 is refitted every
``refit_every`` steps, and filtered with the fitted parameters in between. The forecast h steps ahead has variance

    sigma^2 (psi_0^2 + .. + psi_{h-1}^2),   psi_0 = 1,  psi_j = sum_i phi_i psi_{j-i} + theta_j

Our reading. Eq 9 has no constant, so a forecast would decay to zero: the window's mean is subtracted and added back. Eq
12 subtracts theta where Eq 9 adds it: Eq 9's sign is used. Eq 11: see below. Eq 13 is right if its k = 0 means one step
ahead. Rates are not negative, so forecasts are clipped at zero.

An ARMA(p, q) is fitted by maximum likelihood, and its order chosen by Akaike's criterion. Levenberg and Marquardt's
method minimises the errors of ``arma_likelihood``. The likelihood has several maxima, so the best of two starting
points is kept: Hannan and Rissanen's regressions (a long autoregression gives errors, then x is regressed on its own
and the errors' past), and the previous fit or, without one, a small constant.

    AIC = 2 (p + q + 1) - 2 log L        over p, q = 0..3 without (0, 0)

The paper's Eq 11 gives the innovation variance as a sum of squared coefficients over n; the errors' variance is used
instead.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.optimize import leastsq

from sluicegate.domain import Forecast
from sluicegate.domain.topology import require, require_number
from sluicegate.forecast.arma_likelihood import (
    Floats,
    ahead_of,
    bounded,
    innovations,
    log_likelihood,
    scaled_errors,
    unbounded,
)

ORDERS = tuple((p, q) for p, q in product(range(4), repeat=2) if p + q)
_NONE = np.empty(0)
_MET = (1, 2, 3, 4)  # leastsq's codes for "converged"
_LONG = 10  # lags of the autoregression that estimates the unknown errors
_FLAT = 1e-9  # a window whose deviation is below this share of its mean has nothing to fit


@dataclass(frozen=True, eq=False, slots=True)
class ArmaFit:
    """Parameters of one window. ``note`` says how they were found where it was not maximum likelihood."""

    mean_per_s: float
    phi: Floats
    theta: Floats
    sd_per_s: float
    log_likelihood: float | None = None
    note: str = ""

    @property
    def order(self) -> tuple[int, int]:
        return len(self.phi), len(self.theta)

    @property
    def aic(self) -> float | None:
        return None if self.log_likelihood is None else 2.0 * (sum(self.order) + 1) - 2.0 * self.log_likelihood


def is_flat(window: Floats) -> bool:
    """Whether the window is constant, up to rounding."""
    return bool(np.std(window) <= _FLAT * max(abs(float(np.mean(window))), 1e-12))


def flat(window: Floats) -> ArmaFit:
    """The fit of a constant window: its value with zero variance."""
    return ArmaFit(float(np.mean(window)), _NONE, _NONE, 0.0, note="the window is constant")


def fit(window: Floats, order: tuple[int, int], previous: ArmaFit | None = None) -> ArmaFit:
    """Maximum likelihood fit of ``order`` on the demeaned window; ``previous`` is used as a starting point.

    >>> x = 50.0 + np.sin(np.arange(100.0)) + np.random.default_rng(1).normal(0.0, 0.1, 100)
    >>> found = fit(x, (2, 0))
    >>> round(found.mean_per_s), found.phi.round(1).tolist()
    (50, [1.0, -1.0])
    """
    if is_flat(window):
        return flat(window)
    mean = float(np.mean(window))
    x, p = window - mean, order[0]
    starts = [_hannan_rissanen(x, order), np.full(sum(order), 0.1)]
    if previous is not None and previous.order == order:
        starts[1] = np.concatenate((unbounded(previous.phi), unbounded(-previous.theta)))
    tops = [_climb(x, p, start) for start in starts]
    found = [top for top in tops if top is not None]
    if not found:
        return _without_likelihood(window, order, previous)
    free = min(found, key=lambda top: top[0])[1]
    return _described(x, mean, bounded(free[:p]), -bounded(free[p:]))


def choose_order(window: Floats) -> tuple[int, int]:
    """The order with the least AIC.

    >>> choose_order(np.random.default_rng(3).normal(5.0, 1.0, 100).cumsum() % 3.0) in ORDERS
    True
    """
    best, least = ORDERS[0], math.inf
    for order in ORDERS:
        aic = fit(window, order).aic
        if aic is not None and aic < least:
            best, least = order, aic
    return best


def _climb(x: Floats, p: int, start: Floats) -> tuple[float, Floats] | None:
    """The optimum near ``start`` as (sum of squares, free parameters), or ``None`` without convergence."""
    free, _, info, _, code = leastsq(
        scaled_errors, start, args=(x, p), full_output=True, ftol=1e-8, xtol=1e-6, maxfev=60 * (len(start) + 1)
    )
    squares = float(np.sum(np.square(info["fvec"])))
    return (squares, np.asarray(free, dtype=np.float64)) if code in _MET and math.isfinite(squares) else None


def _described(x: Floats, mean: float, phi: Floats, theta: Floats, note: str = "") -> ArmaFit:
    v, f, _ = innovations(x, phi, theta)
    return ArmaFit(mean, phi, theta, math.sqrt(float(np.mean(v * v / f))), log_likelihood(x, phi, theta), note)


def _without_likelihood(window: Floats, order: tuple[int, int], previous: ArmaFit | None) -> ArmaFit:
    """Fallback without convergence: the previous coefficients, else Hannan and Rissanen's."""
    mean = float(np.mean(window))
    if previous is not None and previous.order == order:
        return _described(window - mean, mean, previous.phi, previous.theta, "no convergence: coefficients kept")
    free = _hannan_rissanen(window - mean, order)
    phi, theta = bounded(free[: order[0]]), -bounded(free[order[0] :])
    return _described(window - mean, mean, phi, theta, "no convergence: by two regressions instead")


def _hannan_rissanen(x: Floats, order: tuple[int, int]) -> Floats:
    p, q = order
    errors, lost = np.zeros(len(x)), 0
    if q:
        lost = min(_LONG, len(x) // 4)
        past = _lagged(x, lost, lost)
        errors[lost:] = x[lost:] - past @ np.linalg.lstsq(past, x[lost:])[0]
    first = lost + max(order)
    past = np.hstack((_lagged(x, p, first), _lagged(errors, q, first)))
    found: Floats = np.asarray(np.linalg.lstsq(past, x[first:])[0], dtype=np.float64)
    return np.concatenate((unbounded(found[:p]), unbounded(-found[p:])))


def _lagged(x: Floats, lags: int, first: int) -> Floats:
    """Columns x_{t-1} .. x_{t-lags}, rows t = first, first + 1, .."""
    columns: Floats = np.empty((len(x) - first, lags))
    for lag in range(1, lags + 1):
        columns[:, lag - 1] = x[first - lag : len(x) - lag]
    return columns


def psi_weights(phi: Floats, theta: Floats, count: int) -> Floats:
    """psi_0 .. psi_{count-1}: the effect of one innovation j steps later.

    >>> psi_weights(np.array([0.5]), np.array([0.25]), 4).tolist()
    [1.0, 0.75, 0.375, 0.1875]
    """
    psi = np.zeros(count)
    psi[0] = 1.0
    for j in range(1, count):
        depth = min(j, len(phi))
        psi[j] = phi[:depth] @ psi[j - depth : j][::-1] + (theta[j - 1] if j <= len(theta) else 0.0)
    return psi


@dataclass(frozen=True, eq=False, slots=True)
class ArmaMemory:
    """The window of values, oldest first; the current order and fit; ``failures`` counts refits without convergence."""

    values: Floats
    learned: int = 0
    order: tuple[int, int] | None = None
    fit: ArmaFit | None = None
    failures: int = 0


@dataclass(frozen=True, slots=True)
class Arma:
    """The paper's forecaster. ``order`` overrides the choice by AIC.

    >>> arma = Arma(order=(1, 0))
    >>> memory = arma.start()
    >>> for t in range(100):
    ...     memory = arma.learn(memory, 100.0 + 10.0 * (t % 2))
    >>> arma.forecast(memory, 2).mean_per_s.round().tolist()
    [100.0, 110.0]
    """

    step_s: float = 60.0
    window: int = 100
    refit_every: int = 10
    order: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        require_number(self.step_s, "step_s", above=True)
        require(self.window >= 20, f"window is {self.window}: an ARMA needs at least 20 values")
        require(self.refit_every >= 1, f"refit_every is {self.refit_every}: give at least 1 step")
        if self.order is not None:
            known = min(self.order) >= 0 and 1 <= max(self.order) <= 3
            require(known, f"order is {self.order}: give p and q from 0 to 3, not both 0")

    @property
    def name(self) -> str:
        return "arma"

    def start(self) -> ArmaMemory:
        return ArmaMemory(np.empty(0), order=self.order)

    def learn(self, memory: ArmaMemory, rate_per_s: float) -> ArmaMemory:
        require_number(rate_per_s, "rate_per_s")
        values = np.append(memory.values[-(self.window - 1) :], rate_per_s)
        learned = memory.learned + 1
        due = len(values) == self.window and (memory.fit is None or (learned - self.window) % self.refit_every == 0)
        if not due:
            return ArmaMemory(values, learned, memory.order, memory.fit, memory.failures)
        if is_flat(values):
            return ArmaMemory(values, learned, memory.order, flat(values), memory.failures)
        order = memory.order or choose_order(values)
        fitted = fit(values, order, memory.fit)
        return ArmaMemory(values, learned, order, fitted, memory.failures + bool(fitted.note))

    def forecast(self, memory: ArmaMemory, steps: int) -> Forecast | None:
        require(steps >= 1, f"steps is {steps}: forecast at least 1")
        fitted = memory.fit
        # fitted to a constant load that is none any more: no forecast until the next fit
        if fitted is None or (not any(fitted.order) and not is_flat(memory.values)):
            return None
        state = innovations(memory.values - fitted.mean_per_s, fitted.phi, fitted.theta)[2]
        mean = fitted.mean_per_s + ahead_of(state, fitted.phi, steps)
        psi = psi_weights(fitted.phi, fitted.theta, steps)
        sd = fitted.sd_per_s * np.sqrt(np.cumsum(psi * psi))
        return Forecast(self.step_s, np.maximum(mean, 0.0), sd)
