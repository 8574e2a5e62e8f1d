"""Spreads processors over the warm slots, for policies that decide the number of nodes.

Such a policy (``Proposal.nodes``) decides once a cycle; nodes start with a delay and stop at once. Until a new node is
warm, tasks for its slots would only queue behind the others. So the processors follow the warm slots, up to the decided
ones: spread so that the pipeline carries the highest rate, and spread again only when the slots change or after a new
decision, not at every tick, as learned rates fluctuate slightly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sluicegate.domain import Proposal, Situation
from sluicegate.policy.in_steps import InSteps, StepMemory
from sluicegate.policy.spread import spread
from sluicegate.policy.within_limits import proposal_within


@dataclass(frozen=True, slots=True)
class NodesMemory:
    """The inner policy's memory, and the current spread with the slots it was made for."""

    inner: StepMemory
    slots: int = 0
    processors: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OverNodes:
    """Wraps ``policy``, which decides nodes of ``slots_per_node`` slots; without a fleet all of them count as warm.

    >>> from sluicegate.domain import Edge, Observation, Operator, Topology
    >>> from sluicegate.policy.papers.uncertainty import Uncertainty
    >>> two = Topology("t", (Operator("a", 10.0), Operator("b", 5.0)), (Edge("source", "a"), Edge("a", "b")))
    >>> now = Situation(0.0, two, Observation(0.0, 9.0, {"a": 1, "b": 1}), 9.0, {"a": 9.0, "b": 9.0})
    >>> curve = ((1, 5.0), (2, 10.0), (3, 15.0))
    >>> policy = OverNodes(InSteps(Uncertainty(0, training=curve, slots_per_node=3), every_s=60.0), 3)
    >>> proposal = policy.propose(policy.start(), now)[1]
    >>> proposal.nodes, proposal.processors
    (2, {'a': 2, 'b': 4})
    """

    policy: InSteps
    slots_per_node: int

    @property
    def name(self) -> str:
        return self.policy.name

    def start(self) -> NodesMemory:
        return NodesMemory(self.policy.start())

    def propose(self, memory: NodesMemory, situation: Situation) -> tuple[NodesMemory, Proposal]:
        inner, proposal = self.policy.propose(memory.inner, situation)
        if proposal.nodes is None:
            return NodesMemory(inner), proposal
        slots = self._slots(situation, proposal.nodes)
        fresh = slots != memory.slots or inner.step != memory.inner.step
        wanted = spread(situation.topology, slots, situation.limits) if fresh else memory.processors
        warm = (f"{slots} slots of the {proposal.nodes} nodes decided are warm",) if slots != memory.slots else ()
        found = proposal_within(wanted, (*proposal.reasons, *warm), situation, proposal.feasible)
        return NodesMemory(inner, slots, found.processors), replace(found, nodes=proposal.nodes)

    def _slots(self, situation: Situation, nodes: int) -> int:
        """The warm slots, at most those of ``nodes``; all of them if the fleet is unknown or none is warm yet."""
        fleet, decided = situation.observation.fleet, nodes * self.slots_per_node
        if fleet is None:
            return decided
        warm = sum(one.slots for one in fleet.warm)
        return min(decided, warm) or decided
