"""The fewest machines that keep an on-time promise: a price on late steps, set so that the promise is just kept.

A target share of on-time steps leaves a budget beta = 1 - target of late ones. It is spent where it saves most: with
lambda the price of a late step in machine steps, the number of machines is

    k* = argmin over k of  J(k) = k + lambda P(k),   P(k) = chance that a step this decision binds for is late

(the Lagrangian of "least machines subject to a mean of P"; a margin equal everywhere would buy the last percent also
where it costs most). Stopping is at once: for fewer machines than run, the steps that pass before others could be
started count too. The price follows what was late. Its unit is the need, the mean of machines that the
expected load takes, and not what runs: else running more would raise the price, and that what runs.

The price is never below LEAST_PRICE machine steps per machine that the expected load needs: else a load far above
the usual (or a first one, with few machines running) would be cheaper to leave late than to serve.

Errors of the forecast and of the capacity curve end up in what was late too, so that the share achieved is the target's
all the same.

A rescale must pay: the regret of staying, J(running) - J(k*), adds up (losing a fifth a decision) until it exceeds
PATIENCE sqrt(running) + DOUBT x (the load's deviation in machines); it starts anew when k* changes sides. In cycles
that patience is stretched or cut so that rescales keep to an allowance (``rescale_allowance``).

The price of a late step: what is left of the budget of late ones says how dear the next one is.

A promise to be on time in a share of steps leaves a budget beta of late ones. One late step takes what 1/beta steps
allow, so that after n steps the allowance of

    saved = n - late/beta

of them is left. The price starts where its optimum lay on loads of very different kinds and follows what is saved:

    price = need/beta x min(PRICE_0 e^-g, MOST_PRICE)             in machine steps, need being machines
    g = beyond/SPEND if beyond > 0, else beyond/REPAY,            beyond = saved - reserve
    reserve = RESERVE n/sqrt(beta n + EARLY)

What is saved adds up, so that the price moves on until as many are late as may be, however far the price that a load
needs is from PRICE_0. The reserve covers chance: n beta late steps come off by about their root, at 99.5% an eighth of
the budget after a week of minutes and a twentieth after two months. Slow on purpose: the predicted chance explains most
of what happens, and a price that chases single bursts pays twice.

A late step stands for 1/beta steps; MOST_PRICE of the need of all of these is the most that avoiding it is worth.
Without that bound one late cycle at 99.9%, which is the budget of a week, makes every step of that week dear, and buys
next to nothing: what nobody could foresee is not undone by paying for what can be.

Neither lasts for ever: of what is saved MOST_SAVED steps beyond the reserve are kept, else a calm year would pay for a
late day, and of what is owed MOST_OWED, else a day of disaster would be paid for all year.
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
from sluicegate.policy.rescale_allowance import RescaleAllowance

# Geometric means of the cost against hindsight and of late steps in budgets, and in how many of the first weeks of
# eight traces the target is reached, by benchmarks/on_time_constants.py (true curve, 2 runs): at 99.5% with decisions
# every step / in cycles of ten.
#     as below        1.188 0.72 7 / 1.398 0.87 6
#     RESERVE 0.5     1.180 0.77 7 / 1.392 0.91 6       RESERVE 1.5     1.192 0.68 8 / 1.406 0.83 6
#     SPEND 1250      1.185 0.81 7 / 1.400 0.94 6       SPEND 5000      1.192 0.65 7 / 1.401 0.78 6
#     REPAY 625       1.191 0.71 8 / 1.402 0.87 6       REPAY 2500      1.183 0.74 7 / 1.391 0.88 5
# And over 21 weeks, before what is saved added up: at 99.5% with decisions every step / at 99.9% in cycles of ten.
#     as it was       1.178 0.72 19 / 1.660 1.59 8
#     PRICE_0 0.09    1.171 0.85 14 / 1.655 1.70 5      MOST_PRICE 0.3  1.171 0.75 15 / 1.627 1.73 5
#     PRICE_0 0.36    1.190 0.60 20 / 1.661 1.38 10     MOST_PRICE 0.6  1.187 0.71 20 / 1.724 1.49 8
PRICE_0 = 0.18
MOST_PRICE = 0.375
RESERVE = 1.0
EARLY = 10.0
SPEND = 2_500.0
REPAY = 1_250.0
# A week and four of minutes. On seven traces of 14 to 56 days neither was worth 0.1% in the mean: they are for years.
MOST_SAVED = 10_000.0
MOST_OWED = 40_000.0


@dataclass(frozen=True, slots=True)
class LateBudget:
    """Steps judged, those of them that were late, and the steps whose allowance is left."""

    steps: float = 0.0
    late: float = 0.0
    saved: float = 0.0

    def judged(self, late: float, steps: int, budget: float) -> LateBudget:
        """``late`` of ``steps`` more steps were late, where a share of ``budget`` may be."""
        n = self.steps + steps
        saved = self.saved + steps - late / budget
        kept = max(min(saved, MOST_SAVED + _reserve(n, budget)), -MOST_OWED)
        return LateBudget(n, self.late + late, kept)

    def price(self, need: float, budget: float) -> float:
        """What avoiding one late step is worth in machine steps, where the load needs ``need`` machines.

        >>> fresh = LateBudget()
        >>> calm, late = fresh.judged(0, 2_000, 0.005), fresh.judged(20, 2_000, 0.005)
        >>> [round(memory.price(10, 0.005)) for memory in (calm, fresh, late)]
        [193, 360, 750]
        """
        beyond = self.saved - _reserve(self.steps, budget)
        # bounded before it is a power: it may be beyond all floats
        log_price = min(-beyond / (SPEND if beyond > 0 else REPAY), math.log(MOST_PRICE / PRICE_0))
        return need * PRICE_0 / budget * math.exp(log_price)


def _reserve(steps: float, budget: float) -> float:
    return RESERVE * steps / math.sqrt(budget * steps + EARLY)


Floats = NDArray[np.float64]

# Cost against hindsight (geometric mean over 21 weeks, 99.5%, decisions every step) and rescales, by
# benchmarks/on_time_constants.py with an earlier price of late steps; as below 1.178.
#     PATIENCE 0.3, 1.2   1.171, 1.194: 21% more, 25% fewer       KEEP 1   1.173: 15% more
#     DOUBT 0.6, 1.4      1.174, 1.181: 8% more, 7% fewer
PATIENCE = 0.6
DOUBT = 1.0
KEEP = 0.8
LEAST_PRICE = 2.0
_MEAN_OVER = 10_000.0
_NORMAL: Floats = ndtri((np.arange(4000) + 0.5) / 4000)  # scores of a forecast that has none


@dataclass(frozen=True, slots=True)
class Timing:
    """When a decision binds: taken ``lead_steps`` before its cycle of ``cycle_steps``; machines start that late.

    A forecast's first step is the one after the last rate known.

    >>> Timing(cycle_steps=10, startup_steps=2, lead_steps=2).bound, Timing().bound
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
        """First and last step ahead that machines asked for in this step serve before the next decision's can."""
        first = max(self.lead_steps, self.startup_steps) + 1
        return first, max(first, self.lead_steps + self.cycle_steps)


@dataclass(frozen=True, eq=False, slots=True)
class Capacity:
    """What 1, 2, .. machines sustain, with the deviation of one draw (its noise and our doubt of the curve)."""

    mean_per_s: Floats
    sd_per_s: Floats

    def __post_init__(self) -> None:
        require(len(self.mean_per_s) == len(self.sd_per_s) > 0, "a capacity needs a mean and a deviation per size")


@dataclass(frozen=True, slots=True)
class OnTimeMemory:
    """What was late, decisions taken and the mean of machines that their loads needed, the regret so far and on which
    side, and the rescales that the load is worth."""

    budget: LateBudget = field(default_factory=LateBudget)
    decisions: int = 0
    mean_need: float = 0.0
    regret: float = 0.0
    side: int = 0
    allowance: RescaleAllowance = field(default_factory=RescaleAllowance)


@dataclass(frozen=True, slots=True)
class Choice:
    """Machines to run, the chance that a step they bind for is late, and why."""

    machines: int
    late_chance: float
    reason: str


@dataclass(frozen=True, slots=True)
class OnTime:
    """The rule for one target and one timing.

    For studies of what bounds it: ``price`` in machine steps fixes what is else learned, and without ``holds`` every
    decision moves to the best number at once.
    """

    target: float
    timing: Timing = Timing()
    price: float | None = None
    holds: bool = True

    def __post_init__(self) -> None:
        require(0 < self.target < 1, f"target is {self.target}: give a share between 0 and 1, such as 0.995")
        require(self.price is None or self.price > 0, f"price is {self.price}: give machine steps above 0")

    @property
    def steps_ahead(self) -> int:
        """How far the forecast must reach."""
        return self.timing.bound[1]

    def start(self) -> OnTimeMemory:
        return OnTimeMemory()

    def judged(self, memory: OnTimeMemory, late: float, steps: int = 1) -> OnTimeMemory:
        """``late`` of the last ``steps`` steps were over capacity."""
        return replace(memory, budget=memory.budget.judged(late, steps, 1 - self.target))

    def saw(self, memory: OnTimeMemory, load_per_s: float) -> OnTimeMemory:
        """The load of one more step."""
        return replace(memory, allowance=memory.allowance.saw(load_per_s))

    def decide(
        self, memory: OnTimeMemory, forecast: Forecast, capacity: Capacity, running: int
    ) -> tuple[OnTimeMemory, Choice]:
        """The machines to ask for, ``running`` being those asked for before.

        >>> sizes = np.arange(1.0, 41)
        >>> load = Forecast(60.0, np.full(3, 10.0), np.full(3, 0.5))
        >>> OnTime(0.995).decide(OnTimeMemory(), load, Capacity(sizes, 0.05 * sizes), running=9)[1].machines
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
        allowance = memory.allowance.decided(needed(memory.allowance.demand_per_s, capacity))
        patience = self._patience(allowance, running, float(mean[wait]), float(sd[wait]))
        moves = side != 0 and total > patience
        after = replace(
            memory,
            regret=0.0 if moves else total,
            side=0 if moves else side,
            allowance=allowance.moved() if moves else allowance,
        )
        machines, late = (best, move) if moves else (running, stay)
        what = f"{running} -> {machines} machines" if moves else f"stays at {running} machines"
        why = f"{best} best, regret {total:.1f} of {patience:.1f} machine steps"
        reason = f"{what} ({why}): late with {late:.3%}, priced at {price:.0f} machine steps; {self._so_far(memory)}"
        return after, Choice(machines, late, reason)

    def _load(self, forecast: Forecast) -> tuple[Floats, Floats, int]:
        """Mean and deviation of the steps that a decision bears on, and how many pass before new machines serve."""
        last = min(self.timing.bound[1], len(forecast.mean_per_s))
        first = min(self.timing.bound[0], last)
        stopped = min(self.timing.lead_steps + 1, first)
        return forecast.mean_per_s[stopped - 1 : last], forecast.sd_per_s[stopped - 1 : last], first - stopped

    def _patience(self, allowance: RescaleAllowance, running: int, mean_per_s: float, sd_per_s: float) -> float:
        if not self.holds:
            return 0.0
        largest = max(mean_per_s, sd_per_s)
        doubt = DOUBT * running * sd_per_s / largest if largest > 0 else 0.0
        stretched = allowance.patience if self.timing.cycle_steps > 1 else 1.0
        return stretched * (PATIENCE * math.sqrt(running) + doubt)

    def _averaged(self, memory: OnTimeMemory, need: int) -> OnTimeMemory:
        n = memory.decisions + 1
        weight = max(1 / n, self.timing.cycle_steps / _MEAN_OVER)
        mean = memory.mean_need + min(weight, 1.0) * (need - memory.mean_need)
        return replace(memory, mean_need=mean, decisions=n)

    def _so_far(self, memory: OnTimeMemory) -> str:
        judged = memory.budget
        if not judged.steps:
            return f"nothing judged yet for {self.target:.3%}"
        return f"on time so far {1 - judged.late / judged.steps:.3%} for {self.target:.3%}"


def needed(rate_per_s: float, capacity: Capacity) -> int:
    """The fewest machines whose mean capacity exceeds the rate; all there are where none does."""
    enough = int(np.argmax(capacity.mean_per_s > rate_per_s))
    return enough + 1 if capacity.mean_per_s[enough] > rate_per_s else len(capacity.mean_per_s)
