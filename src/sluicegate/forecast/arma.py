"""ARMA forecasts with their variances (uncertainty-aware VM scheduling, Eq 9 to 13).

The order is chosen by AIC on the first window of 100 values; a sliding window of the last 100 is refitted every
``refit_every`` steps, and filtered with the fitted parameters in between. The forecast h steps ahead has variance

    sigma^2 (psi_0^2 + .. + psi_{h-1}^2),   psi_0 = 1,  psi_j = sum_i phi_i psi_{j-i} + theta_j

Our reading. Eq 9 has no constant, so a forecast would decay to zero: the window's mean is subtracted and added back.
Eq 12 subtracts theta where Eq 9 adds it: Eq 9's sign is used. Eq 11: see ``arma_fit``. Eq 13 is right if its k = 0
means one step ahead. Rates are not negative, so forecasts are clipped at zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sluicegate.domain import Forecast
from sluicegate.domain.topology import require, require_number
from sluicegate.forecast.arma_fit import ArmaFit, choose_order, fit, flat, is_flat
from sluicegate.forecast.arma_likelihood import Floats, ahead_of, innovations


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
