"""Recent peak: sizes for the largest rate of the last w steps plus a margin.

    demand = max of the rates of the last w steps x (1 + x),    k_i = least k with k mu_i > demand x v_i

The window is one of time (w steps of ``step_s``), so that early, late and missing ticks do not matter: a rate counts
while it is younger than the window. mu_i is the topology's, one processor's rate as learned so far; v_i are the
operator's visits per row of the pipeline's rate. Given the capacity curve of the whole pipeline, it instead spreads the
least m machines whose capacity is above the demand.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from sluicegate.domain import Proposal, Situation
from sluicegate.domain.figures import rate
from sluicegate.domain.topology import require, require_number
from sluicegate.policy.peers.readings import fewest_for
from sluicegate.policy.spread import spread
from sluicegate.policy.within_limits import proposal_within


@dataclass(frozen=True, slots=True)
class SeenRate:
    """The pipeline's rate at one time."""

    at_s: float
    rate_per_s: float


@dataclass(frozen=True, slots=True)
class RecentPeak:
    """The policy. ``window_steps`` is w, ``margin`` is x; larger values are safer and more expensive.

    ``curve_per_s``, if known, is the capacity of 0, 1, 2, ... machines.

    >>> from sluicegate.domain import Edge, Observation, Operator, Topology
    >>> one = Topology("t", (Operator("a", 100.0),), (Edge("source", "a"),))
    >>> at = lambda now_s, rate: Situation(now_s, one, Observation(now_s, rate, {"a": 1}), rate, {"a": rate})
    >>> policy = RecentPeak()
    >>> memory, first = policy.propose(policy.start(), at(0.0, 450.0))
    >>> memory, soon = policy.propose(memory, at(240.0, 100.0))
    >>> memory, later = policy.propose(memory, at(300.0, 100.0))
    >>> first.total, soon.total, later.total
    (6, 6, 2)
    """

    window_steps: int = 5
    margin: float = 0.2
    step_s: float = 60.0
    curve_per_s: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        require(self.window_steps >= 1, f"recent-peak window is {self.window_steps} steps: give at least 1")
        require_number(self.margin, "recent-peak margin")
        require_number(self.step_s, "recent-peak step_s", above=True)

    @property
    def name(self) -> str:
        return "recent-peak"

    def start(self) -> tuple[SeenRate, ...]:
        return ()

    def propose(self, memory: tuple[SeenRate, ...], situation: Situation) -> tuple[tuple[SeenRate, ...], Proposal]:
        since_s = situation.now_s - self.window_steps * self.step_s
        # a rate exactly as old as the window is dropped, with a tolerance for float rounding
        kept = tuple(seen for seen in memory if seen.at_s > since_s + 1e-4 * self.step_s)
        seen_all = (*kept, SeenRate(situation.now_s, max(0.0, situation.arrivals_per_s)))
        peak = max(seen.rate_per_s for seen in seen_all)
        demand = peak * (1 + self.margin)
        wanted = self._sized(demand, situation)
        reason = (
            f"the largest of {self.window_steps * self.step_s:g} s is {rate(peak, 6)}, x {1 + self.margin:g}"
            f" = {rate(demand, 6)}: {sum(wanted.values())} processors"
        )
        return seen_all, proposal_within(wanted, (reason,), situation)

    def _sized(self, demand_per_s: float, situation: Situation) -> dict[str, int]:
        if self.curve_per_s is None:
            return fewest_for(demand_per_s, situation.topology)
        machines = min(bisect_right(self.curve_per_s, demand_per_s), len(self.curve_per_s) - 1)
        return spread(situation.topology, max(machines, 1), situation.limits)
