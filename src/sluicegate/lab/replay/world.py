"""The ground truth of a replay: the real capacity of m machines, and when a policy may decide.

The capacity is drawn anew every minute or every cycle:

    capacity_t(m) = mean(m) + sd(m) z_t,    z_t standard normal, the same for every policy

Mean and variance are interpolated linearly between the measured sizes. Below the smallest the rate is proportional;
beyond the largest it continues with its last slope, at most proportionally. All sizes share one z, which keeps the
policies comparable: a slow minute is slow for every policy.

Hindsight is the least m with capacity_t(m) > lambda_t at every step of its window (a cycle, or one minute); static
peak is the least m that suffices at every step of the trace. Both know the draws.

The protocol defines when a policy decides, and from when on its machines serve and are paid for:

    cycle   the paper's: one number for each cycle of 10 minutes, decided 2 minutes ahead; one draw of capacity a cycle.
            New machines of a policy that decides when the cycle starts serve 2 minutes late.
    free    at any minute; a machine serves 2 minutes after it was requested and is paid for from the request on;
            stopping is immediate, and machines that are still starting are stopped first; a draw of capacity a minute.

A decision at minute t knows the rates of finished minutes only, up to t - 1. The first cycle runs with the machines
needed for the trace's first rate plus 20%, the same for every policy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sluicegate.domain.topology import require
from sluicegate.errors import BadInput

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Point = tuple[int, float, float]

LEAST_TABLE = 128  # the paper predicts up to 128 machines
# Without a capacity file: the rate per machine falls with the logarithm of their number, to 74% at 32 and 67% at 128.
# No policy's model has this form (they fit power laws, polynomials and reciprocals of them), so none has an advantage.
_ONE_PER_S, _FALL, _RSD = 1000.0, 0.1, 0.05
_CURVE = {m: _ONE_PER_S * m / (1 + _FALL * math.log(m)) for m in range(1, 129)}
DEFAULT_POINTS: tuple[Point, ...] = tuple((m, rate, _RSD * rate) for m, rate in _CURVE.items())
DEFAULT_SAID = "capacity of m machines: 1000 m/(1 + 0.1 ln m) rows/s, 5% noise (no capacity file was given)"
_ROWS = 2048  # steps per block in hindsight: bounds its memory on long traces


@dataclass(frozen=True, eq=False, slots=True)
class Truth:
    """Mean and standard deviation by number of machines, from 0; ``measured`` is the largest measured size."""

    mean_per_s: Floats
    sd_per_s: Floats
    measured: int

    @property
    def most(self) -> int:
        return len(self.mean_per_s) - 1

    def needs(self, rate_per_s: float) -> int:
        """The least machines whose mean capacity exceeds the rate; the largest size if none does."""
        enough = np.flatnonzero(self.mean_per_s > rate_per_s)
        return int(enough[0]) if len(enough) else self.most

    def at(self, machines: Ints, draws: Floats) -> Floats:
        """The drawn capacity of the given machines at each step."""
        drawn: Floats = np.maximum(self.mean_per_s[machines] + self.sd_per_s[machines] * draws, 0.0)
        return drawn

    def rising(self) -> Floats:
        """The non-decreasing mean, as if surplus machines were left idle."""
        best: Floats = np.maximum.accumulate(self.mean_per_s)
        return best


def truth_of(points: Sequence[Point]) -> Truth:
    """The capacity table through measured points.

    >>> truth = truth_of([(2, 20.0, 1.0), (4, 30.0, 3.0)])
    >>> truth.mean_per_s[:6].tolist(), truth.sd_per_s[3].round(3).item()
    ([0.0, 10.0, 20.0, 25.0, 30.0, 35.0], 2.236)
    """
    require(bool(points), "no capacity points: give at least one")
    largest = points[-1][0]
    sizes = np.arange(max(LEAST_TABLE, 2 * largest) + 1, dtype=np.float64)
    known = np.array([(0.0, 0.0, 0.0), *points])
    mean = np.interp(sizes, known[:, 0], known[:, 1])
    # below the smallest size the deviation is proportional, like the rate
    sd = np.where(
        sizes < points[0][0],
        sizes * points[0][2] / points[0][0],
        np.sqrt(np.interp(sizes, known[:, 0], known[:, 2] ** 2)),
    )
    slope = (known[-1, 1] - known[-2, 1]) / (known[-1, 0] - known[-2, 0])
    slope = min(max(slope, 0.0), known[-1, 1] / largest)
    beyond = sizes > largest
    mean[beyond] = known[-1, 1] + slope * (sizes[beyond] - largest)
    sd[beyond] = known[-1, 2] / known[-1, 1] * mean[beyond]
    return Truth(mean, sd, largest)


def draws_of(steps: int, draw_steps: int, seed: int, run: int) -> Floats:
    """z_t of every step; one draw holds for ``draw_steps`` steps.

    >>> z = draws_of(6, 3, seed=1, run=0)
    >>> bool(z[0] == z[1] == z[2] != z[3])
    True
    """
    rng = np.random.default_rng((seed, run))
    drawn = rng.standard_normal(-(-steps // draw_steps))
    return np.repeat(drawn, draw_steps)[:steps]


def measured_sizes(truth: Truth, sizes: Sequence[int], seed: int, run: int) -> tuple[tuple[int, float], ...]:
    """Training data of a policy's capacity model: one noisy measurement of each size that the table has."""
    rng = np.random.default_rng((seed, run, 1))
    found = [
        (m, float(truth.mean_per_s[m] + truth.sd_per_s[m] * z))
        for m, z in zip(sizes, rng.standard_normal(len(sizes)), strict=True)
        if m <= truth.most
    ]
    return tuple((m, rate) for m, rate in found if rate > 0)


def hindsight(truth: Truth, rates_per_s: Floats, draws: Floats, window_steps: int) -> Ints:
    """For each step, the least machines that are on time at every step of its window."""
    starts = range(0, len(rates_per_s), max(1, _ROWS // window_steps) * window_steps)
    width = max(1, _ROWS // window_steps) * window_steps
    parts = [_least(truth, rates_per_s[i : i + width], draws[i : i + width], window_steps) for i in starts]
    return np.concatenate(parts)


def static_peak(truth: Truth, rates_per_s: Floats, draws: Floats) -> int:
    """The least machines that are on time at every step of the trace."""
    holds = np.ones(truth.most + 1, dtype=np.bool_)
    for i in range(0, len(rates_per_s), _ROWS):
        holds &= _holds(truth, rates_per_s[i : i + _ROWS], draws[i : i + _ROWS]).all(axis=0)
    return int(np.argmax(holds)) if holds.any() else truth.most


def _holds(truth: Truth, rates_per_s: Floats, draws: Floats) -> NDArray[np.bool_]:
    carried = truth.mean_per_s + truth.sd_per_s * draws[:, None]
    holds: NDArray[np.bool_] = carried > rates_per_s[:, None]
    holds[:, 0] = False  # at least one machine must run, even without load
    return holds


def _least(truth: Truth, rates_per_s: Floats, draws: Floats, window_steps: int) -> Ints:
    holds = _holds(truth, rates_per_s, draws)
    starts = np.arange(0, len(rates_per_s), window_steps)
    whole = np.logical_and.reduceat(holds, starts, axis=0)
    least = np.where(whole.any(axis=1), whole.argmax(axis=1), truth.most)
    return np.repeat(least, window_steps)[: len(rates_per_s)].astype(np.int64)


STEP_S = 60.0


@dataclass(frozen=True, slots=True)
class Protocol:
    """When decisions are made and machines serve; a step is a minute."""

    name: str
    cycle_steps: int
    startup_steps: int = 2

    @property
    def free(self) -> bool:
        return self.cycle_steps == 1

    @property
    def draw_steps(self) -> int:
        return self.cycle_steps

    @property
    def lead_steps(self) -> int:
        """Steps by which a decision precedes its cycle; 0 if it may be made at any minute."""
        return 0 if self.free else self.startup_steps

    @property
    def bound(self) -> tuple[int, int]:
        """First and last step bound by a decision, counted from the last rate it knows."""
        first = self.startup_steps + 1
        return first, first + self.cycle_steps - 1

    def decides(self, t: int, lead_steps: int) -> bool:
        """Whether a decision at the start of minute ``t`` counts."""
        return t >= 1 and (t + lead_steps) % self.cycle_steps == 0

    def serving(self, asked: Ints, late_steps: int) -> Ints:
        """The machines that serve: the minimum requested over the last ``late_steps`` steps and now.

        >>> PROTOCOLS["free"].serving(np.array([5, 8, 7, 7, 4]), 2).tolist()
        [5, 5, 5, 7, 4]
        """
        serving = asked.copy()
        for back in range(1, min(late_steps, len(asked) - 1) + 1):
            serving[back:] = np.minimum(serving[back:], asked[:-back])
        return serving


PROTOCOLS = {"cycle": Protocol("cycle", cycle_steps=10), "free": Protocol("free", cycle_steps=1)}
HINDSIGHT_STEPS = 10  # cost is relative to the hindsight minimum per 10-minute cycle, in both protocols


def protocol_named(name: str) -> Protocol:
    """The protocol; an unknown name is an error that lists the known ones."""
    try:
        return PROTOCOLS[name]
    except KeyError:
        raise BadInput(f"unknown protocol {name!r}: choose {' or '.join(PROTOCOLS)}") from None
