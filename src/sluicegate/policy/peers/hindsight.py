"""Hindsight: the least allocation for the true load of the coming window. Not implementable; a bound for policies.

    k_i = least k with k mu_i > v_i x max of the rates of the coming window

Element j of ``rates_per_s`` holds from ``start_s + j step_s`` for one step. The window is a cycle (10 steps in the
uncertainty paper) or a single step; it starts with the current step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sluicegate.domain import Proposal, Situation
from sluicegate.domain.figures import rate
from sluicegate.domain.topology import require, require_number
from sluicegate.policy.peers.readings import fewest_for
from sluicegate.policy.within_limits import proposal_within

# A tick slightly before a step's start belongs to that step.
_EARLY_STEPS = 1e-6


@dataclass(frozen=True, eq=False, slots=True)
class Hindsight:
    """The policy; ``rates_per_s`` is the true pipeline rate of every step, including future ones.

    >>> from sluicegate.domain import Edge, Observation, Operator, Topology
    >>> one = Topology("t", (Operator("a", 100.0),), (Edge("source", "a"),))
    >>> at = lambda now_s: Situation(now_s, one, Observation(now_s, 0.0, {"a": 1}), 0.0, {"a": 0.0})
    >>> policy = Hindsight((50.0, 250.0, 100.0), step_s=60.0, window_steps=2)
    >>> [policy.propose(None, at(now_s))[1].total for now_s in (0.0, 60.0, 120.0, 600.0)]
    [3, 3, 2, 2]
    """

    rates_per_s: Sequence[float] | NDArray[np.float64]
    step_s: float = 60.0
    window_steps: int = 10
    start_s: float = 0.0

    def __post_init__(self) -> None:
        require(len(self.rates_per_s) > 0, "hindsight has no rates: give at least one")
        require_number(self.step_s, "hindsight step_s", above=True)
        require(self.window_steps >= 1, f"hindsight window is {self.window_steps} steps: give at least 1")

    @property
    def name(self) -> str:
        return "hindsight"

    def start(self) -> None:
        return None

    def propose(self, memory: None, situation: Situation) -> tuple[None, Proposal]:
        peak = self._peak_per_s(situation.now_s)
        wanted = fewest_for(peak, situation.topology)
        reason = f"the coming {self.window_steps * self.step_s:g} s will peak at {rate(peak, 6)}"
        return None, proposal_within(wanted, (reason,), situation)

    def _peak_per_s(self, now_s: float) -> float:
        """The peak rate of the window; times outside the trace use its first or last rate."""
        step = math.floor((now_s - self.start_s) / self.step_s + _EARLY_STEPS)
        first = min(max(step, 0), len(self.rates_per_s) - 1)
        return max(0.0, float(max(self.rates_per_s[first : max(step, 0) + self.window_steps])))
