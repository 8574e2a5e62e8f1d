"""Mc-Stream's instance level: instances by algorithm 1 (Eq 9), rows over them by algorithm 2.

Algorithm 1 raises the first vertex's m_1 in growing, then shrinking steps until one more instance improves neither
its throughput min(lambda, m mu) nor its latency (by ``least_gain``), as the situation's model tells. The others follow:

    c_1/p_1 : m_1 = c_2/p_2 : m_2 = ...,   rounded up, 1 <= m <= m_max

c is the measured demand lambda/mu of a vertex (the paper reads it off the code), p the capacity of the node it runs
on. The first vertex is the first upstream that gets rows.

Afterwards algorithm 2 watches the queues. Our reading: a mean queue out of bounds updates the number of that vertex
only, and until one is, the last plan stands, also where it could not be carried out at once; a vertex whose queue
nobody measured follows the model at every step. Shares stay until the queues ask for others, the instances are known
to be equally fast again, or their number changes: a new instance has no queue to go by.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from sluicegate.domain import Operator, Proposal, Situation
from sluicegate.domain.topology import require, require_number
from sluicegate.model import erlang, microbatch
from sluicegate.policy.papers.redirection import QueueBounds, Redirection, equally_fast, redirect
from sluicegate.policy.within_limits import proposal_within

_MOST = 1_000_000
_MOST_DEMAND = 1e15
"""Bounds of the search and of the ratio: beyond them no limit allows anything."""


@dataclass(frozen=True, slots=True)
class McStreamMemory:
    """What was last proposed: instances, and shares of the rows; and what ran then."""

    wanted: Mapping[str, int]
    shares: Mapping[str, tuple[float, ...]]
    ran: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class McStream:
    """Mc-Stream as a policy. ``capacity_of`` gives p where nodes differ (1 where it is not named).

    ``least_gain`` 1%: M/M/k gets faster with every instance, if only by nothing that could be measured. A vertex with
    5 busy instances gets 10 with 1%, 8 with 5%, 12 with 0.1%.

    >>> from sluicegate.domain import Edge, Operator, Topology
    >>> from sluicegate.policy.demand import situation_at
    >>> two = (Operator("reader", 100.0), Operator("count", 50.0))
    >>> t = Topology("t", two, (Edge("source", "reader"), Edge("reader", "count")))
    >>> memory, proposal = McStream().propose(None, situation_at(t, 500.0))
    >>> dict(proposal.processors)
    {'reader': 10, 'count': 20}
    """

    bounds: QueueBounds = field(default_factory=QueueBounds)
    least_gain: float = 0.01
    capacity_of: Mapping[str, float] = field(default_factory=dict)
    name: str = "mc-stream"

    def __post_init__(self) -> None:
        require(0 < self.least_gain < 1, f"least_gain is {self.least_gain}: give a share between 0 and 1")
        for name, capacity in self.capacity_of.items():
            require_number(capacity, f"capacity of {name!r}", above=True)

    def start(self) -> McStreamMemory | None:
        return None

    def propose(self, memory: McStreamMemory | None, situation: Situation) -> tuple[McStreamMemory | None, Proposal]:
        fresh, why = self.instances(situation)
        known = memory if memory is not None and set(memory.wanted) == set(fresh) else McStreamMemory({}, {})
        wanted, shares, reasons = dict(fresh), dict(known.shares), [why]
        for name in situation.topology.names:
            queues = _queues(situation, name)
            if not queues:
                continue
            asked = redirect(queues, self.bounds)
            if name in known.wanted:
                have = situation.running.get(name, known.wanted[name])
                # unchanged since the last plan, that plan was not carried out yet: it stands
                kept = known.wanted[name] if known.ran.get(name) == have else have
                wanted[name] = fresh[name] if asked.resize else kept
                reasons.append(f"{name}: {asked.reason}: {have} -> {wanted[name]} instances")
            if name in shares and equally_fast(situation.observation.of(name).instance_per_s):
                del shares[name]
                reasons.append(f"{name}: its instances are equally fast again: rows in equal shares")
            elif asked.shares is not None and len(asked.shares) == wanted[name]:
                shares[name] = asked.shares
                reasons.append(_redirected(situation.topology.operator(name), asked))
        proposal = proposal_within(wanted, tuple(reasons), situation, _keeps_up(fresh, situation))
        shares = {name: share for name, share in shares.items() if len(share) == proposal.processors[name]}
        return McStreamMemory(wanted, shares, dict(situation.running)), replace(proposal, shares=shares)

    def instances(self, situation: Situation) -> tuple[dict[str, int], str]:
        """Algorithm 1: the instances of every vertex, and how they came about."""
        topology = situation.topology
        demand = {o.name: min(_arrivals(situation, o) / o.service_per_s, _MOST_DEMAND) for o in topology.operators}
        first = next((name for name in topology.order if demand[name] > 0), None)
        if first is None:
            return dict.fromkeys(topology.names, 1), "no rows arrive: one instance each"
        vertex = topology.operator(first)
        m_1 = self._first_instances(vertex, _arrivals(situation, vertex))
        # c/p of a vertex: Eq 9 keeps it in one proportion to the instances.
        relative = {name: demand[name] / self.capacity_of.get(name, 1.0) for name in topology.names}
        wanted = {name: max(1, _round_up(m_1 * (relative[name] / relative[first]))) for name in topology.names}
        stop = f"one more gains less than {self.least_gain:.1%}" if m_1 < _MOST else "where the search ends"
        return {**wanted, first: m_1}, (
            f"{first}: {m_1:,} instances for {_arrivals(situation, vertex):,.4g} rows/s at {vertex.service_per_s:,.4g} "
            f"rows/s each, {stop}; the others in proportion to their demand"
        )

    def _first_instances(self, vertex: Operator, arrivals_per_s: float) -> int:
        def improves(m: int) -> bool:
            """Whether the m-th instance brings throughput or latency."""
            if (m - 1) * vertex.service_per_s < arrivals_per_s:
                return True
            return _mean_s(vertex, arrivals_per_s, m) < _mean_s(vertex, arrivals_per_s, m - 1) * (1 - self.least_gain)

        return last_that(improves, _MOST)


def _redirected(operator: Operator, seen: Redirection) -> str:
    how = "by moving key groups, as it has state" if operator.stateful else "row by row"
    return f"{operator.name}: {seen.reason}: routed by free places, {how}"


def _arrivals(situation: Situation, operator: Operator) -> float:
    return max(situation.operator_arrivals_per_s.get(operator.name, 0.0), 0.0)


def _keeps_up(wanted: Mapping[str, int], situation: Situation) -> bool:
    """False only where the search ended at its bound."""
    return all(wanted[o.name] * o.service_per_s > _arrivals(situation, o) for o in situation.topology.operators)


def _queues(situation: Situation, name: str) -> tuple[float, ...]:
    """The queue of each instance; an even part of the vertex's where only that was measured."""
    seen, running = situation.observation.of(name), situation.running.get(name, 0)
    if seen.instance_queues or seen.queue_rows is None or running < 1:
        return seen.instance_queues
    return (seen.queue_rows / running,) * running


def _mean_s(vertex: Operator, arrivals_per_s: float, m: int) -> float:
    if vertex.batch is not None:
        return microbatch.mean_sojourn_s(arrivals_per_s, vertex.service_per_s, m, vertex.batch)
    return erlang.mean_sojourn_s(arrivals_per_s, vertex.service_per_s, m, vertex.arrival_scv, vertex.service_scv)


def last_that(improves: Callable[[int], bool], most: int) -> int:
    """The largest m up to ``most`` whose last instance still improves, 1 at least: steps double, then halve.

    Gains diminish (both laws are convex), so the bound is found in a number of looks that grows with log m.
    """
    m, step, growing = 1, 1, True
    while step >= 1:
        if m + step <= most and improves(m + step):
            m += step
            step = step * 2 if growing else step // 2
        else:
            growing, step = False, step // 2
    return m


def _round_up(number: float) -> int:
    """The ceiling, with the rounding of a ratio that is whole undone."""
    return math.ceil(min(number, _MOST_DEMAND) * (1 - 1e-12))
