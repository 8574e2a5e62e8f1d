"""Bundles for planners that only count: each processor takes its own share of a slot, by its operator's figures."""

from __future__ import annotations

from collections.abc import Mapping

from sluicegate.domain import Bundle, Proposal, Topology


def bundles_of(topology: Topology, running: Mapping[str, int], proposal: Proposal | None = None) -> tuple[Bundle, ...]:
    """What is to be placed for ``running``: the proposal's own bundles if it packed exactly this, else one a processor.

    >>> from sluicegate.domain import Edge, Operator
    >>> one = Topology("t", (Operator("a", 9.0, cpu=0.5),), (Edge("source", "a"),))
    >>> [(b.threads, b.cpu) for b in bundles_of(one, {"a": 2})]
    [(1, 0.5), (1, 0.5)]
    """
    if proposal is not None and proposal.bundles and dict(proposal.processors) == dict(running):
        return proposal.bundles
    return tuple(
        Bundle(operator.name, 1, min(operator.cpu, 1.0), min(operator.memory, 1.0))
        for operator in topology.operators
        for _ in range(running[operator.name])
    )
