"""Distributions of times, normalised to mean 1; the caller scales them.

``of_scv`` picks the usual one for a squared coefficient of variation c:

    c = 0        constant
    0 < c < 1    gamma with shape 1/c (Erlang where 1/c is whole)
    c = 1        exponential
    c > 1        two exponentials with balanced means: p = (1 + sqrt((c-1)/(c+1)))/2, means 1/(2p) and 1/(2(1-p))

``uniform`` serves the papers' applications whose times are known by their bounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum

from sluicegate.domain.topology import require, require_number
from sluicegate.lab.simulate import rng
from sluicegate.lab.simulate.compiled import compiled
from sluicegate.lab.simulate.rng import Streams


class Kind(IntEnum):
    EXPONENTIAL = 0
    CONSTANT = 1
    UNIFORM = 2
    GAMMA = 3
    HYPEREXPONENTIAL = 4


EXPONENTIAL, CONSTANT, UNIFORM = int(Kind.EXPONENTIAL), int(Kind.CONSTANT), int(Kind.UNIFORM)
GAMMA = int(Kind.GAMMA)


@dataclass(frozen=True, slots=True)
class Distribution:
    """A distribution of mean 1; the meaning of ``a``, ``b``, ``c`` depends on the kind. Use the functions below."""

    kind: Kind
    scv: float
    a: float = 0.0
    b: float = 0.0
    c: float = 0.0


def exponential() -> Distribution:
    return Distribution(Kind.EXPONENTIAL, 1.0)


def constant() -> Distribution:
    return Distribution(Kind.CONSTANT, 0.0)


def uniform(low: float, high: float) -> Distribution:
    """Uniform between two bounds, of which only the ratio counts.

    >>> round(uniform(1 / 8, 1 / 2).scv, 3)
    0.12
    """
    require_number(low, "low")
    require_number(high, "high", least=low, above=True)
    mean = (low + high) / 2
    return Distribution(Kind.UNIFORM, ((high - low) / mean) ** 2 / 12, low / mean, (high - low) / mean)


def gamma(scv: float) -> Distribution:
    require_number(scv, "scv", above=True)
    return Distribution(Kind.GAMMA, scv, 1 / scv, scv)


def hyperexponential(share: float, first_mean: float, second_mean: float) -> Distribution:
    """An exponential of ``first_mean`` with probability ``share``, else of ``second_mean``, scaled to mean 1."""
    require(0 <= share <= 1, f"share is {share}: give a probability, 0 to 1")
    require_number(first_mean, "first_mean")
    require_number(second_mean, "second_mean")
    mean = share * first_mean + (1 - share) * second_mean
    require_number(mean, "the mean of both", above=True)
    first, second = first_mean / mean, second_mean / mean
    scv = 2 * (share * first**2 + (1 - share) * second**2) - 1
    return Distribution(Kind.HYPEREXPONENTIAL, scv, share, first, second)


def of_scv(scv: float) -> Distribution:
    """The usual distribution with this squared coefficient of variation.

    >>> [of_scv(c).kind.name for c in (0.0, 0.5, 1.0, 4.0)]
    ['CONSTANT', 'GAMMA', 'EXPONENTIAL', 'HYPEREXPONENTIAL']
    """
    require_number(scv, "scv")
    if scv == 0:
        return constant()
    if scv < 1:
        return gamma(scv)
    if scv == 1:
        return exponential()
    share = (1 + math.sqrt((scv - 1) / (scv + 1))) / 2
    return hyperexponential(share, 1 / share, 1 / (1 - share))


@compiled
def draw(kind: int, a: float, b: float, c: float, streams: Streams, i: int) -> float:
    """One draw; the last kind is two exponentials, the first of them with probability ``a``."""
    if kind == EXPONENTIAL:
        return rng.exponential(streams, i)
    if kind == CONSTANT:
        return 1.0
    if kind == UNIFORM:
        return a + b * rng.uniform(streams, i)
    if kind == GAMMA:
        return b * _gamma(a, streams, i)
    mean = b if rng.uniform(streams, i) < a else c
    return mean * rng.exponential(streams, i)


@compiled
def _gamma(shape: float, streams: Streams, i: int) -> float:
    """Marsaglia and Tsang: squeeze a cubed normal; below shape 1 draw at shape + 1 and scale down by u^(1/shape)."""
    d = (shape if shape >= 1.0 else shape + 1.0) - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = rng.normal(streams, i)
        v = (1.0 + c * x) ** 3
        u = 1.0 - rng.uniform(streams, i)
        if v > 0.0 and math.log(u) < 0.5 * x * x + d - d * v + d * math.log(v):
            break
    drawn: float = d * v
    if shape >= 1.0:
        return drawn
    return drawn * math.pow(1.0 - rng.uniform(streams, i), 1.0 / shape)
