"""The price of a late step: what is left of the budget of late ones says how dear the next one is.

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
from dataclasses import dataclass

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
