"""The fewest machines for a target share of on-time steps: a price on late steps adapts until the target is just met.

A target share of on-time steps leaves a budget beta = 1 - target of late ones. It is spent where it saves most: with
lambda the price of a late step in machine steps, the number of machines is

    k* = argmin over k of  J(k) = k + lambda P(k),   P(k) = probability that a step covered by this decision is late

(the Lagrangian of "least machines subject to a mean of P"; an equal margin everywhere would pay for the last percent
also where it costs most). Stopping is immediate: for fewer machines than run, the steps until others could be started
count too. The price follows the late steps so far. Its unit is the need, the mean number of machines that the expected
load takes, and not the running number: else running more would raise the price, which would raise the running number.

The price is never below LEAST_PRICE machine steps per machine that the expected load needs: else a load far above
the usual (or a first one, with few machines running) would be cheaper to leave late than to serve.

Errors of the forecast and of the capacity curve show up as late steps too, so that the achieved share still reaches the
target.

A rescale must pay: the regret of staying, J(running) - J(k*), accumulates (losing a fifth per decision) until it
exceeds PATIENCE sqrt(running) + the load's deviation in machines, the latter divided by the n steps of a cycle; it
restarts at zero when k* changes sides.

The price follows the remaining budget. One late step uses up the allowance of 1/beta steps, so that after n steps the
allowance of

    saved = n - late/beta

steps is left, and

    price = need/beta x min(PRICE_0 e^-(beyond/SPEND), MOST_PRICE)      in machine steps, need being machines
    beyond = saved - sqrt(n/beta)

``saved`` is an integral, so that the price moves until the budget is used, however far the price that a load needs is
from PRICE_0. The root is a reserve for chance, about one deviation of n beta late steps: at 99.5% a seventh of the
budget after a week of minutes and a twentieth after two months. The price is slow on purpose: the predicted probability
explains most late steps, and a price that reacts to single bursts pays twice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from sluicegate.domain import Forecast
from sluicegate.domain.topology import require
from sluicegate.policy.late_chance import weighed

Floats = NDArray[np.float64]

# Half and double of each: docs/benchmarks.md, three traces of four days, target 99.5%, in cycles of ten steps.
# The initial price, as a share of need/beta.
# Half: 1.5% cheaper, 0.83 of the budget late where it was 0.74. Double: 1.5% more expensive, 0.68.
PRICE_0 = 0.18
# Cap on the price of a late step. Else one late cycle at 99.9%, the budget of a week, makes every step of that week
# expensive with hardly any effect. Half: 4% cheaper, a target missed. Double: 1% more expensive, 5% at 99.9%.
MOST_PRICE = 2 * PRICE_0
# Least price per machine that the expected load needs: else a load far above the usual is cheaper to leave late than to
# serve. Half, double: it does not bind on usual loads.
LEAST_PRICE = 2.0
# Saved steps over which the price falls by a factor e. Half: 0.4% more expensive there, 2% on NASA and ClarkNet: single
# bursts move it. Double: over weeks more of the budget stays unspent.
SPEND = 2_500.0
# Steps: cap on the allowance saved or owed, so that the price falls to a fiftieth at most, and averaging window of the
# need. A year without late steps does not pay for a late day, nor does one outage affect a whole year.
MEMORY = 4 * SPEND
# What a rescale must save, in machine steps per square root of the machines. Half: a quarter more rescales, 0.8%
# cheaper. Double: a quarter fewer, 1.8% more expensive.
PATIENCE = 0.6
# Share of the regret kept to the next decision. Half: 15% fewer rescales, 2% more expensive. All of it (1): 8% more
# rescales, and a quarter more with decisions every step.
KEEP = 0.8
_NORMAL: Floats = ndtri((np.arange(4000) + 0.5) / 4000)  # scores of a forecast that has none


@dataclass(frozen=True, slots=True)
class LateBudget:
    """Steps counted, late steps among them, and the remaining allowance in steps."""

    steps: float = 0.0
    late: float = 0.0
    saved: float = 0.0

    def judged(self, late: float, steps: int, budget: float) -> LateBudget:
        """Count ``steps`` more steps, of which ``late`` were late; a share of ``budget`` may be."""
        n = self.steps + steps
        saved = self.saved + steps - late / budget
        kept = max(min(saved, MEMORY + _reserve(n, budget)), -MEMORY)
        return LateBudget(n, self.late + late, kept)

    def price(self, need: float, budget: float) -> float:
        """The price of one late step in machine steps, for a load that needs ``need`` machines.

        >>> fresh = LateBudget()
        >>> calm, late = fresh.judged(0, 2_000, 0.005), fresh.judged(20, 2_000, 0.005)
        >>> [round(memory.price(10, 0.005)) for memory in (calm, fresh, late)]
        [208, 360, 720]
        """
        beyond = self.saved - _reserve(self.steps, budget)
        # bounded before exp, which could overflow
        log_price = min(-beyond / SPEND, math.log(MOST_PRICE / PRICE_0))
        return need * PRICE_0 / budget * math.exp(log_price)


def _reserve(steps: float, budget: float) -> float:
    return math.sqrt(steps / budget)


@dataclass(frozen=True, slots=True)
class Steps:
    """Which steps a decision covers: it is taken ``lead_steps`` before its cycle of ``cycle_steps`` and machines take
    ``startup_steps`` to start.

    A forecast's first step is the one after the last rate known.

    >>> Steps(cycle_steps=10, startup_steps=2, lead_steps=2).bound, Steps().bound
    ((3, 12), (3, 3))
    """

    cycle_steps: int = 1
    startup_steps: int = 2
    lead_steps: int = 0

    def __post_init__(self) -> None:
        require(self.cycle_steps >= 1, f"cycle_steps is {self.cycle_steps}: give at least 1")
        require(min(self.startup_steps, self.lead_steps) >= 0, "startup_steps and lead_steps must be at least 0")

    @property
    def bound(self) -> tuple[int, int]:
        """First and last step ahead that machines requested now serve before those of the next decision can."""
        first = max(self.lead_steps, self.startup_steps) + 1
        return first, max(first, self.lead_steps + self.cycle_steps)


@dataclass(frozen=True, eq=False, slots=True)
class CapacityBelief:
    """Capacity of 1, 2, .. machines, with the deviation of one sample (its noise and the curve's uncertainty)."""

    mean_per_s: Floats
    sd_per_s: Floats

    def __post_init__(self) -> None:
        require(len(self.mean_per_s) == len(self.sd_per_s) > 0, "a capacity needs a mean and a deviation per size")


@dataclass(frozen=True, slots=True)
class OnTimeMemory:
    """Late budget, decisions taken, mean number of machines needed, accumulated regret and its side (more or fewer)."""

    budget: LateBudget = field(default_factory=LateBudget)
    decisions: int = 0
    mean_need: float = 0.0
    regret: float = 0.0
    side: int = 0


@dataclass(frozen=True, slots=True)
class Choice:
    """Machines to run, the probability that a step covered by the decision is late, and the reason."""

    machines: int
    late_chance: float
    reason: str


@dataclass(frozen=True, slots=True)
class OnTime:
    """The rule for one target and one timing.

    For ablation studies: ``price`` in machine steps fixes the otherwise learned price, and without ``holds`` every
    decision moves to the best number at once.
    """

    target: float
    timing: Steps = Steps()
    price: float | None = None
    holds: bool = True

    def __post_init__(self) -> None:
        require(0 < self.target < 1, f"target is {self.target}: give a share between 0 and 1, such as 0.995")
        require(self.price is None or self.price > 0, f"price is {self.price}: give machine steps above 0")

    def start(self) -> OnTimeMemory:
        return OnTimeMemory()

    def judged(self, memory: OnTimeMemory, late: float, steps: int = 1) -> OnTimeMemory:
        """``late`` of the last ``steps`` steps were over capacity."""
        return replace(memory, budget=memory.budget.judged(late, steps, 1 - self.target))

    def decide(
        self, memory: OnTimeMemory, forecast: Forecast, capacity: CapacityBelief, running: int
    ) -> tuple[OnTimeMemory, Choice]:
        """The machines to request; ``running`` are those requested before.

        >>> sizes = np.arange(1.0, 41)
        >>> load = Forecast(60.0, np.full(3, 10.0), np.full(3, 0.5))
        >>> OnTime(0.995).decide(OnTimeMemory(), load, CapacityBelief(sizes, 0.05 * sizes), running=9)[1].machines
        13
        """
        running = min(max(running, 1), len(capacity.mean_per_s))
        mean, sd, wait = self._load(forecast)
        need = needed(float(mean[wait:].max()), capacity)
        memory = self._averaged(memory, need)
        learned = memory.budget.price(memory.mean_need, 1 - self.target)
        price = max(learned if self.price is None else self.price, LEAST_PRICE * need)
        scores = forecast.scores if len(forecast.scores) else _NORMAL
        best, regret, stay, move = weighed(
            mean, sd, scores, capacity.mean_per_s, capacity.sd_per_s, running, price, wait
        )
        side = (best > running) - (best < running)
        total = regret + (KEEP * memory.regret if side == memory.side else 0.0)
        patience = self._patience(running, float(mean[wait]), float(sd[wait]))
        moves = side != 0 and total > patience
        after = replace(memory, regret=0.0 if moves else total, side=0 if moves else side)
        machines, late = (best, move) if moves else (running, stay)
        what = f"{running} -> {machines} machines" if moves else f"stays at {running} machines"
        why = f"{best} best, regret {total:.1f} of {patience:.1f} machine steps"
        reason = f"{what} ({why}): late with {late:.3%}, priced at {price:.0f} machine steps; {self._so_far(memory)}"
        return after, Choice(machines, late, reason)

    def _load(self, forecast: Forecast) -> tuple[Floats, Floats, int]:
        """Mean and deviation of the steps that a decision affects, and how many pass before new machines serve."""
        last = min(self.timing.bound[1], len(forecast.mean_per_s))
        first = min(self.timing.bound[0], last)
        stopped = min(self.timing.lead_steps + 1, first)
        return forecast.mean_per_s[stopped - 1 : last], forecast.sd_per_s[stopped - 1 : last], first - stopped

    def _patience(self, running: int, mean_per_s: float, sd_per_s: float) -> float:
        if not self.holds:
            return 0.0
        largest = max(mean_per_s, sd_per_s)
        deviation = running * sd_per_s / largest if largest > 0 else 0.0
        return PATIENCE * math.sqrt(running) + deviation / self.timing.cycle_steps

    def _averaged(self, memory: OnTimeMemory, need: int) -> OnTimeMemory:
        n = memory.decisions + 1
        weight = max(1 / n, self.timing.cycle_steps / MEMORY)
        mean = memory.mean_need + min(weight, 1.0) * (need - memory.mean_need)
        return replace(memory, mean_need=mean, decisions=n)

    def _so_far(self, memory: OnTimeMemory) -> str:
        judged = memory.budget
        if not judged.steps:
            return f"nothing judged yet for {self.target:.3%}"
        return f"on time so far {1 - judged.late / judged.steps:.3%} for {self.target:.3%}"


def needed(rate_per_s: float, capacity: CapacityBelief) -> int:
    """The fewest machines whose mean capacity exceeds the rate; the largest size if none does."""
    enough = int(np.argmax(capacity.mean_per_s > rate_per_s))
    return enough + 1 if capacity.mean_per_s[enough] > rate_per_s else len(capacity.mean_per_s)
