"""Fits an ARMA(p, q) by maximum likelihood and chooses its order by Akaike's criterion.

Levenberg and Marquardt's method minimises the errors of ``arma_likelihood``. The likelihood has several maxima, so the
best of two starting points is kept: Hannan and Rissanen's regressions (a long autoregression gives errors, then x is
regressed on its own and the errors' past), and the previous fit or, without one, a small constant.

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

from sluicegate.forecast.arma_likelihood import Floats, bounded, innovations, log_likelihood, scaled_errors, unbounded

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
