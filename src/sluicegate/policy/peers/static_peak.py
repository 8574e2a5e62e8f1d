"""Static peak: sized once for the largest expected load, never changed.

    k_i = least k with k mu_i > peak x v_i,    v_i the operator's visits

The peak is given; if not, it is the larger of the current rate at the first call and the forecast's peak at the level
of the goal's share of on-time steps (99.5% without one).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sluicegate.domain import Proposal, Situation
from sluicegate.domain.figures import rate
from sluicegate.domain.topology import require_number
from sluicegate.policy.peers.readings import fewest_for
from sluicegate.policy.within_limits import proposal_within

_LEVEL = 0.995


@dataclass(frozen=True, slots=True)
class Sized:
    """The peak and processors chosen at the first call."""

    peak_per_s: float
    processors: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class StaticPeak:
    """The policy; ``peak_per_s`` is the pipeline rate to size for.

    >>> from sluicegate.domain import Edge, Observation, Operator, Topology
    >>> one = Topology("t", (Operator("a", 100.0),), (Edge("source", "a"),))
    >>> at = lambda rate: Situation(0.0, one, Observation(0.0, rate, {"a": 1}), rate, {"a": rate})
    >>> memory, first = StaticPeak().propose(None, at(450.0))
    >>> _, later = StaticPeak().propose(memory, at(900.0))
    >>> first.total, later.total, StaticPeak(1000.0).propose(None, at(1.0))[1].total
    (5, 5, 11)
    """

    peak_per_s: float | None = None

    def __post_init__(self) -> None:
        if self.peak_per_s is not None:
            require_number(self.peak_per_s, "static-peak peak_per_s")

    @property
    def name(self) -> str:
        return "static-peak"

    def start(self) -> Sized | None:
        return None

    def propose(self, memory: Sized | None, situation: Situation) -> tuple[Sized | None, Proposal]:
        sized = memory or self._sized(situation)
        reason = f"sized once for a peak of {rate(sized.peak_per_s, 6)}: {sum(sized.processors.values())} processors"
        return sized, proposal_within(sized.processors, (reason,), situation)

    def _sized(self, situation: Situation) -> Sized:
        peak_per_s = self._peak_per_s(situation)
        return Sized(peak_per_s, fewest_for(peak_per_s, situation.topology))

    def _peak_per_s(self, situation: Situation) -> float:
        if self.peak_per_s is not None:
            return self.peak_per_s
        now_per_s = max(0.0, situation.arrivals_per_s)
        if situation.forecast is None:
            return now_per_s
        return max(now_per_s, situation.forecast.peak_per_s(situation.goal.on_time or _LEVEL))
