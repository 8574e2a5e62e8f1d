"""Arrivals from outside: a process of unit rate, time-changed by the integral of the rate.

Gaps are drawn from a distribution of mean 1 and mapped through the integrated rate R(t), which is piecewise linear:

    R(t_{n+1}) = R(t_n) + gap_n,        R(t) = integral of rate from 0 to t

Exponential gaps make a Poisson process, also where the rate changes; constant gaps a deterministic one. A bursty
source is silent except for bursts, ``share`` of the time, in which rows arrive as a Poisson process: an interrupted
Poisson process (a Markov-modulated one with two states), whose gaps are hyperexponential. The squared coefficient of
variation c of its gaps determines the mean length of a burst, B in units of the mean gap:

    c = 1 + 2 B (1 - share)^2 / share
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sluicegate.domain.topology import require, require_number
from sluicegate.lab.simulate import distributions
from sluicegate.lab.simulate.compiled import inlined
from sluicegate.lab.simulate.distributions import Distribution


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Rows per second in steps, and the distribution of gaps. After the last step no rows arrive."""

    rates_per_s: tuple[float, ...]
    step_s: float = math.inf
    gaps: Distribution = field(default_factory=distributions.exponential)

    def __post_init__(self) -> None:
        require(bool(self.rates_per_s), "arrivals without a rate: give at least one, in rows per second")
        for rate in self.rates_per_s:
            require_number(rate, "arrival rate")
        require(self.step_s > 0, f"step_s is {self.step_s}: it must be above 0")
        steady = math.isinf(self.step_s)
        require(not steady or len(self.rates_per_s) == 1, "several rates need a step_s: how long each of them holds")

    @property
    def steady(self) -> bool:
        return math.isinf(self.step_s)

    def scaled(self, share: float) -> Arrivals:
        """The same pattern at ``share`` of the rate."""
        return Arrivals(tuple(rate * share for rate in self.rates_per_s), self.step_s, self.gaps)

    def mean_per_s(self, seconds: float) -> float:
        """The mean rate over the first ``seconds``.

        >>> trace(10.0, [4.0, 8.0]).mean_per_s(15.0), trace(10.0, [4.0, 8.0]).mean_per_s(40.0)
        (5.333333333333333, 3.0)
        """
        if self.steady:
            return self.rates_per_s[0]
        held = (min(max(seconds - i * self.step_s, 0.0), self.step_s) for i in range(len(self.rates_per_s)))
        return sum(rate * s for rate, s in zip(self.rates_per_s, held, strict=True)) / seconds


def poisson(rate_per_s: float) -> Arrivals:
    """Poisson arrivals at a constant rate.

    >>> poisson(5.0).gaps.scv
    1.0
    """
    return Arrivals((rate_per_s,))


def deterministic(rate_per_s: float) -> Arrivals:
    """One row every ``1 / rate_per_s`` seconds."""
    return Arrivals((rate_per_s,), gaps=distributions.constant())


def renewal(rate_per_s: float, gaps: Distribution) -> Arrivals:
    """A renewal process: independent gaps of any distribution."""
    return Arrivals((rate_per_s,), gaps=gaps)


def trace(step_s: float, rates_per_s: Sequence[float], gaps: Distribution | None = None) -> Arrivals:
    """A recorded load: each rate holds for ``step_s``; Poisson within the steps unless ``gaps`` says otherwise."""
    require(math.isfinite(step_s), f"step_s is {step_s}: a trace needs steps that end")
    rates = tuple(float(rate) for rate in rates_per_s)
    return Arrivals(rates, step_s, gaps or distributions.exponential())


@inlined
def after(now: float, gap: float, rates: NDArray[np.float64], first: int, steps: int, step_s: float) -> float:
    """The time at which the integrated rate has grown by ``gap`` since ``now``; ``inf`` if it never does.

    The rates are ``rates[first : first + steps]``.
    """
    step = int(now / step_s)
    while step < steps:
        rate = rates[first + step]
        end = (step + 1) * step_s
        if rate > 0.0 and gap <= rate * (end - now):
            return float(now + gap / rate)
        gap -= rate * (end - now) if rate > 0.0 else 0.0
        step += 1
        now = end
    return math.inf
