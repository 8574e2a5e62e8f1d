"""Mc-Stream's instance level: number of instances by algorithm 1 (Eq 9), routing of rows by algorithm 2.

Algorithm 1 raises the first vertex's m_1 in growing, then shrinking steps until one more instance improves neither
its throughput nor its latency (by ``least_gain``), by the situation's model: throughput is min(lambda, m mu), where a
backlog adds to lambda. The others follow from:

    c_1/p_1 : m_1 = c_2/p_2 : m_2 = ...,   rounded up, 1 <= m <= m_max

c is the measured demand lambda/mu of a vertex (the paper derives it from the code), p the capacity of the node it runs
on. The first vertex is the most upstream one that gets rows.

Afterwards algorithm 2 monitors the queues. Our reading: a mean queue out of bounds updates the number of that vertex
only, and otherwise the last plan is kept, even if it has not taken effect yet; a vertex without a measured queue
follows the model at every step. Shares are kept until the queues require others, the instances are equally fast again,
or their number changes, as a new instance has no queue history.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from sluicegate.domain import Operator, Proposal, Situation
from sluicegate.domain.figures import rate
from sluicegate.domain.topology import require, require_number
from sluicegate.model import erlang, microbatch
from sluicegate.policy.papers.mc_trial import InstanceTrial, Measurement
from sluicegate.policy.papers.redirection import QueueBounds, Redirection, equally_fast, redirect
from sluicegate.policy.within_limits import proposal_within

_MOST = 1_000_000
_MOST_DEMAND = 1e15
"""Bounds of the search and of the ratio, above any limit."""


@dataclass(frozen=True, slots=True)
class McStreamMemory:
    """The last proposal (instances and shares of rows), the allocation that ran then, and the current trial."""

    wanted: Mapping[str, int]
    shares: Mapping[str, tuple[float, ...]]
    ran: Mapping[str, int] = field(default_factory=dict)
    trial: InstanceTrial | None = None


@dataclass(frozen=True, slots=True)
class McStream:
    """Mc-Stream as a policy. ``capacity_of`` gives p where nodes differ (default 1).

    With ``trial_s`` the first vertex's instances are found by trial on the running pipeline, each number measured for
    that long (``mc_trial``); else by the model, to which rows that wait beyond the queues' bound are load over
    ``catch_up_s``: a trial would measure that more instances carry more while they last. At most ``most_moves``
    instances are moved at once, ``redeploy_s`` apart, and packed if the utilisation of the nodes in use is below
    ``least_utilisation``.

    Levels can be disabled for ablation studies: without ``instance_level`` (algorithms 1 and 2) the running instances
    stay and rows are routed in equal shares, without ``scheduling_level`` (algorithm 3) instances are placed on nodes
    round robin, without ``resource_level`` (algorithm 4) none is moved and no node released.

    ``least_gain`` 1%: M/M/k gets faster with every instance, even if immeasurably. A vertex with 5 busy instances gets
    10 with 1%, 8 with 5%, 12 with 0.1%.

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
    most_moves: int = 4
    least_utilisation: float = 0.3
    redeploy_s: float = 20.0
    trial_s: float = 0.0
    catch_up_s: float = 10.0
    instance_level: bool = True
    scheduling_level: bool = True
    resource_level: bool = True

    def __post_init__(self) -> None:
        require_number(self.trial_s, "trial_s")
        require_number(self.redeploy_s, "redeploy_s")
        require_number(self.catch_up_s, "catch_up_s", above=True)
        require(0 < self.least_gain < 1, f"least_gain is {self.least_gain}: give a share between 0 and 1")
        for name, capacity in self.capacity_of.items():
            require_number(capacity, f"capacity of {name!r}", above=True)

    @property
    def placing(self) -> dict[str, object]:
        """Options of its placer (``place.mc_stream_live``)."""
        rules = {"most_moves": self.most_moves, "least_utilisation": self.least_utilisation}
        levels = {"scheduling": self.scheduling_level, "online": self.resource_level}
        return {"moving": rules, "wait_s": self.redeploy_s, **levels}

    def start(self) -> McStreamMemory | None:
        return None

    def propose(self, memory: McStreamMemory | None, situation: Situation) -> tuple[McStreamMemory | None, Proposal]:
        if not self.instance_level:
            as_it_is = {name: situation.running.get(name, 1) for name in situation.topology.names}
            return memory, proposal_within(as_it_is, ("instances as they are: no instance level",), situation, True)
        trial, tried = self._tried(memory, situation)
        fresh, why = self.instances(situation, trial)
        known = memory if memory is not None and set(memory.wanted) == set(fresh) else McStreamMemory({}, {})
        wanted, shares, reasons = dict(fresh), dict(known.shares), [*tried, why]
        found = {name: _queues(situation, name) for name in situation.topology.names}
        asked = {name: redirect(queues, self.bounds) for name, queues in found.items() if queues}
        for name, one in asked.items():
            if name in known.wanted and (trial is None or trial.done):
                have = situation.running.get(name, known.wanted[name])
                # the running number has not changed since the last plan: that plan is still pending and is kept
                kept = known.wanted[name] if known.ran.get(name) == have else have
                wanted[name] = fresh[name] if one.resize else kept
                reasons.append(f"{name}: {one.reason}: {have} -> {wanted[name]} instances")
        proposal = proposal_within(wanted, tuple(reasons), situation, _keeps_up(fresh, situation))
        redirected = []
        for name, one in asked.items():
            if name in shares and equally_fast(situation.observation.of(name).instance_per_s):
                del shares[name]
                redirected.append(f"{name}: its instances are equally fast again: rows in equal shares")
            elif one.shares is not None and len(one.shares) == proposal.processors[name]:  # of those the limits allow
                shares[name] = one.shares
                redirected.append(_redirected(situation.topology.operator(name), one))
        shares = {name: share for name, share in shares.items() if len(share) == proposal.processors[name]}
        memory = McStreamMemory(wanted, shares, dict(situation.running), trial)
        return memory, replace(proposal, shares=shares, reasons=(*proposal.reasons, *redirected))

    def _tried(
        self, memory: McStreamMemory | None, situation: Situation
    ) -> tuple[InstanceTrial | None, tuple[str, ...]]:
        """The current trial of the first vertex, if enabled, and its reason."""
        first = _first(situation)
        if not self.trial_s or first is None:
            return None, ()
        seen, have = situation.observation, situation.running.get(first, 1)
        latency_s = None if seen.sojourn is None else seen.sojourn.mean_s
        known = memory.trial if memory is not None else None
        trial = known or InstanceTrial(have, situation.now_s, have)
        if trial.m != have and not trial.done:
            trial = trial.not_yet(situation.now_s)
        now = Measurement(situation.arrivals_per_s, seen.throughput_per_s, latency_s)
        most = situation.limits.most_for(first)
        most = most if situation.limits.budget is None else min(most, situation.limits.budget)
        trial, why = trial.after(situation.now_s, now, self.trial_s, self.least_gain, most)
        return trial, (f"{first}: by trial, {why}",)

    def instances(self, situation: Situation, trial: InstanceTrial | None = None) -> tuple[dict[str, int], str]:
        """Algorithm 1: the instances of every vertex, and the reason; a ``trial`` gives those of the first vertex."""
        topology = situation.topology
        load = {o.name: self._load_per_s(situation, o) for o in topology.operators}
        demand = {o.name: min(load[o.name] / o.service_per_s, _MOST_DEMAND) for o in topology.operators}
        # c/p of a vertex: Eq 9 keeps it in one proportion to the instances.
        relative = {name: demand[name] / self.capacity_of.get(name, 1.0) for name in topology.names}
        first = _first(situation)
        if first is None or not relative[first]:  # a load may be so small that its demand rounds to nothing
            return dict.fromkeys(topology.names, 1), "no rows arrive: one instance each"
        vertex = topology.operator(first)
        m_1 = trial.m if trial is not None else self._first_instances(vertex, load[first])
        wanted = {name: max(1, _round_up(m_1 * (relative[name] / relative[first]))) for name in topology.names}
        stop = f"one more gains less than {self.least_gain:.1%}" if m_1 < _MOST else "where the search ends"
        stop = stop if trial is None else "as the trial has it"
        return {**wanted, first: m_1}, (
            f"{first}: {m_1:,} instances for {rate(load[first])} at {rate(vertex.service_per_s)} "
            f"each, {stop}; the others in proportion to their demand"
        )

    def _load_per_s(self, situation: Situation, vertex: Operator) -> float:
        """Its arrivals, and what its queues hold beyond their bound: more instances work that off faster."""
        queues, arrivals_per_s = _queues(situation, vertex.name), _arrivals(situation, vertex)
        beyond = math.fsum(queues) - self.bounds.most_mean * len(queues)
        return arrivals_per_s + max(beyond, 0.0) / self.catch_up_s if arrivals_per_s > 0 else 0.0

    def _first_instances(self, vertex: Operator, arrivals_per_s: float) -> int:
        def improves(m: int) -> bool:
            """Whether the m-th instance improves throughput or latency."""
            if (m - 1) * vertex.service_per_s < arrivals_per_s:
                return True
            return _mean_s(vertex, arrivals_per_s, m) < _mean_s(vertex, arrivals_per_s, m - 1) * (1 - self.least_gain)

        return last_that(improves, _MOST)


def _first(situation: Situation) -> str | None:
    """The most upstream vertex that gets rows."""
    operators = (situation.topology.operator(name) for name in situation.topology.order)
    return next((operator.name for operator in operators if _arrivals(situation, operator) > 0), None)


def _redirected(operator: Operator, seen: Redirection) -> str:
    how = "by moving key groups, as it has state" if operator.stateful else "row by row"
    return f"{operator.name}: {seen.reason}: routed by free places, {how}"


def _arrivals(situation: Situation, operator: Operator) -> float:
    return max(situation.operator_arrivals_per_s.get(operator.name, 0.0), 0.0)


def _keeps_up(wanted: Mapping[str, int], situation: Situation) -> bool:
    """Whether every vertex has capacity above its arrivals; false if the search ended at its bound."""
    return all(wanted[o.name] * o.service_per_s > _arrivals(situation, o) for o in situation.topology.operators)


def _queues(situation: Situation, name: str) -> tuple[float, ...]:
    """The queue of each instance; an equal share of the vertex's queue if only that was measured."""
    seen, running = situation.observation.of(name), situation.running.get(name, 0)
    if seen.instance_queues or seen.queue_rows is None or running < 1:
        return seen.instance_queues
    return (seen.queue_rows / running,) * running


def _mean_s(vertex: Operator, arrivals_per_s: float, m: int) -> float:
    if vertex.batch is not None:
        return microbatch.mean_sojourn_s(arrivals_per_s, vertex.service_per_s, m, vertex.batch)
    return erlang.mean_sojourn_s(arrivals_per_s, vertex.service_per_s, m, vertex.arrival_scv, vertex.service_scv)


def last_that(improves: Callable[[int], bool], most: int) -> int:
    """The largest m up to ``most`` whose last instance still improves, at least 1: steps double, then halve.

    Gains diminish (both laws are convex), so the number of evaluations grows with log m.
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
    """The ceiling, with a tolerance for the rounding of a whole ratio."""
    return math.ceil(min(number, _MOST_DEMAND) * (1 - 1e-12))
