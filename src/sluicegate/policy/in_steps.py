"""Calls a policy once a step or once a cycle, however often the loop polls.

Papers that decide in cycles (one decision every S, taken U before the cycle starts) assume one call per decision. The
loop polls more often; in between the last proposal is repeated. Saturated throughput seen meanwhile is kept for the
next decision: it is the only throughput sample of a cycle.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sluicegate.domain import Proposal, Situation
from sluicegate.policy.policy import Policy
from sluicegate.policy.within_limits import proposal_within


@dataclass(frozen=True, slots=True)
class StepMemory:
    """The inner policy's memory, the step of its last call, its proposal, and the saturated throughput since."""

    inner: Any
    step: int | None = None
    proposal: Proposal | None = None
    running: Mapping[str, int] = field(default_factory=dict)
    saturated_per_s: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class InSteps:
    """Calls ``policy`` once every ``every_s``, ``lead_s`` before the step starts.

    >>> from sluicegate.domain import Edge, Observation, Operator, Topology
    >>> from sluicegate.policy.peers.ds2 import Ds2
    >>> one = Topology("t", (Operator("a", 10.0),), (Edge("source", "a"),))
    >>> at = lambda s, rate: Situation(s, one, Observation(s, rate, {"a": 1}), rate, {"a": rate})
    >>> policy = InSteps(Ds2(), every_s=60.0)
    >>> memory, first = policy.propose(policy.start(), at(0.0, 25.0))
    >>> memory, between = policy.propose(memory, at(30.0, 75.0))
    >>> memory, later = policy.propose(memory, at(60.0, 75.0))
    >>> first.total, between.total, later.total
    (3, 3, 8)
    """

    policy: Policy[Any]
    every_s: float
    lead_s: float = 0.0

    @property
    def name(self) -> str:
        return self.policy.name

    def start(self) -> StepMemory:
        return StepMemory(self.policy.start())

    def propose(self, memory: StepMemory, situation: Situation) -> tuple[StepMemory, Proposal]:
        # tolerate a tick that is a millionth of a step early: times are sums of floats
        step = math.floor((situation.now_s + self.lead_s) / self.every_s + 1e-6)
        seen = _with_saturated(memory, situation)
        if memory.proposal is not None and step == memory.step:
            kept = memory.proposal
            left_s = (step + 1) * self.every_s - self.lead_s - situation.now_s
            why = (f"held: the next decision is in {left_s:.3g} s",)
            held = replace(
                proposal_within(kept.processors, why, situation, kept.feasible),
                bundles=kept.bundles,
                slots=kept.slots,
                nodes=kept.nodes,
            )
            return replace(memory, running=dict(situation.running), saturated_per_s=seen), held
        inner, proposal = self.policy.propose(memory.inner, _with(situation, seen))
        return StepMemory(inner, step, proposal, dict(situation.running)), proposal


def _with_saturated(memory: StepMemory, situation: Situation) -> dict[str, float]:
    """Saturated throughput of operators since the last decision, as long as the allocation is unchanged."""
    if situation.observation.rescaling:
        return {}
    kept = dict(memory.saturated_per_s) if dict(memory.running) == dict(situation.running) else {}
    fresh = {n: situation.observation.of(n).saturated_per_s for n in situation.topology.names}
    return {**kept, **{name: rate for name, rate in fresh.items() if rate is not None}}


def _with(situation: Situation, saturated: Mapping[str, float]) -> Situation:
    seen = situation.observation
    operators = dict(seen.operators)
    for name, rate in saturated.items():
        operators[name] = replace(seen.of(name), saturated_per_s=rate)
    return replace(situation, observation=replace(seen, operators=operators)) if saturated else situation
