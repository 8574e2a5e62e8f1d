"""Spark DStreams' dynamic allocation: scales executors by the ratio of processing time to batch interval.

    every 60 s:  ratio = mean processing time / batch interval
    ratio >= 0.9: add round(ratio) executors, at least one      ratio <= 0.3: remove one

An executor has ``Limits.slots_per_executor`` processors; they are spread over the operators so that the pipeline
carries the highest rate. Our readings: the slowest operator limits the pipeline, so the largest ratio counts; of an
operator that is not in batches the utilisation replaces the ratio (a batch that takes 90% of its interval keeps its
processors busy 90% of the time); round is half up, as in Spark. A decision holds until the next one, which starts from
the executors that then run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import fmean

from sluicegate.domain import Proposal, Situation
from sluicegate.domain.topology import require, require_number
from sluicegate.policy.peers.readings import MOST, running_of, utilisation_of
from sluicegate.policy.within_limits import proposal_within, spread_within


@dataclass(frozen=True, slots=True)
class DStreamsMemory:
    """The last decision (time, executors, reason), and the ratios since."""

    decided_s: float
    executors: int
    why: str
    ratios: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class DStreamsAllocation:
    """The policy. ``batch_interval_s`` is the pipeline's; ``every_s`` the time between decisions on the mean ratio.

    ``up_ratio``: executors are added from here on; lower keeps more in reserve. ``down_ratio``: one is removed at or
    below it.

    >>> from sluicegate.domain import Batch, Edge, Observation, Operator, OperatorObservation, Topology
    >>> one = Topology("t", (Operator("a", 100.0),), (Edge("source", "a"),))
    >>> late = OperatorObservation(batches=(Batch(900.0, 4, 2.0), Batch(900.0, 4, 3.0)))
    >>> at = lambda now_s: Situation(now_s, one, Observation(now_s, 450.0, {"a": 4}, {"a": late}), 450.0, {"a": 450.0})
    >>> policy = DStreamsAllocation(batch_interval_s=1.0)
    >>> memory, first = policy.propose(policy.start(), at(0.0))
    >>> first.total, policy.propose(memory, at(60.0))[1].total  # 2.5 s of 1 s: add 3
    (4, 7)
    """

    batch_interval_s: float = 1.0
    every_s: float = 60.0
    up_ratio: float = 0.9
    down_ratio: float = 0.3

    def __post_init__(self) -> None:
        require_number(self.batch_interval_s, "dstreams batch_interval_s", above=True)
        require_number(self.every_s, "dstreams every_s", above=True)
        require(0 <= self.down_ratio < self.up_ratio, "dstreams ratios: need 0 <= down_ratio < up_ratio")

    @property
    def name(self) -> str:
        return "dstreams"

    def start(self) -> DStreamsMemory | None:
        return None

    def propose(self, memory: DStreamsMemory | None, situation: Situation) -> tuple[DStreamsMemory, Proposal]:
        running, slots = running_of(situation), situation.limits.slots_per_executor
        have = math.ceil(sum(running.values()) / slots)
        memory = memory or DStreamsMemory(situation.now_s, have, "first observation: kept")
        ratio = self._ratio(situation)
        memory = memory if ratio is None else replace(memory, ratios=(*memory.ratios, ratio))
        if situation.now_s - memory.decided_s >= self.every_s:
            memory = self._decided(memory, situation.now_s, have)
        if memory.executors == have:
            return memory, proposal_within(running, (memory.why,), situation)
        return memory, spread_within(memory.executors * slots, (memory.why,), situation)

    def _ratio(self, situation: Situation) -> float | None:
        """The largest ratio of an operator; ``None`` while none of them has ended a batch."""
        found = [self._ratio_of(situation, name) for name in situation.topology.names]
        return max((ratio for ratio in found if ratio is not None), default=None)

    def _ratio_of(self, situation: Situation, name: str) -> float | None:
        batches = situation.observation.of(name).batches
        if batches:
            return fmean(batch.duration_s for batch in batches) / self.batch_interval_s
        return None if situation.topology.operator(name).batch is not None else utilisation_of(situation, name)

    def _decided(self, memory: DStreamsMemory, now_s: float, have: int) -> DStreamsMemory:
        if not memory.ratios:
            return DStreamsMemory(now_s, memory.executors, "no batch has ended: kept")
        ratio = fmean(memory.ratios)
        seen = f"batches take {ratio:.3g} of their interval"
        if self.down_ratio < ratio < self.up_ratio:
            why = f"{seen}, between {self.down_ratio:g} and {self.up_ratio:g}: kept"
            return DStreamsMemory(now_s, memory.executors, why)
        change = max(1, math.floor(min(ratio, MOST) + 0.5)) if ratio >= self.up_ratio else -1
        executors = max(1, have + change)
        return DStreamsMemory(now_s, executors, f"{seen}: {have} executors {change:+d}: {executors}")
