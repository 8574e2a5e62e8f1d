"""Es-Stream: instances by marginal analysis, upstream first (algorithm 1 and its trigger).

Operators are processed upstream first. Each gets the k* of Eq 11 (``model/marginal.py``) for the rate that its upstream
will send with the upstream's NEW instances: min(arrivals, k mu) x selectivity. In a pipeline with a loop no order is
upstream first, so the situation's arrivals are used as they are.

When it replans: on the first call; then when the input rate is more than ``trigger`` off the rate last planned for
(the paper prints increases only, here both directions count), at least ``changing_s`` after the last adjustment; and at
a stable rate, at least every ``stable_s``, when some operator's load lambda/mu is more than ``trigger`` off: the cost
per row has changed, which the rate does not show. Otherwise the last plan is kept.

The paper gives neither beta nor service rates. Ours, 0.05 and the rates of ``examples/commodity_count.toml`` and
``examples/top_n.toml``, were fitted to its totals: the match shows that the model can reach them, not that it is right.

    rate/s           1,800   3,600   2,700    most on 52 instances (paper)
    commodity count     14      24      19    15,200/s (15,000)
    top n               18      27      23    13,500/s (13,500)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sluicegate.domain import Operator, Proposal, Situation, is_source
from sluicegate.domain.figures import rate
from sluicegate.domain.topology import require, require_number
from sluicegate.model.marginal import BestServers, best_servers
from sluicegate.policy.papers.backup import BackupRule, backup_paces
from sluicegate.policy.papers.es_stream_nodes import NodeThresholds
from sluicegate.policy.within_limits import proposal_within

BETA = 0.05
"""Share of a node that one instance takes; a larger one gives fewer instances (see the table above)."""


@dataclass(frozen=True, slots=True)
class EsStreamMemory:
    """The last adjustment: its time, rate, loads (lambda/mu), and the wanted instances before limits."""

    adjusted_at_s: float
    rate_per_s: float
    offered: Mapping[str, float]
    wanted: Mapping[str, int]
    keeps_up: bool


@dataclass(frozen=True, slots=True)
class EsStream:
    """Es-Stream as a policy. ``beta_of`` overrides ``beta`` for single operators.

    ``eta``, ``phi``, ``chi``, ``zeta`` and ``most_load`` (alpha) are the thresholds of its node rules
    (``es_stream_nodes``). State is backed up every ``backup_s``; on a node loaded beyond ``most_load`` as rarely as a
    repair within ``repair_s`` allows (``backup``).

    >>> from sluicegate.domain import Edge, Operator, Topology
    >>> from sluicegate.policy.demand import situation_at
    >>> one = Topology("t", (Operator("count", 385.0),), (Edge("source", "count"),))
    >>> memory, proposal = EsStream().propose(None, situation_at(one, 1800.0))
    >>> dict(proposal.processors)
    {'count': 9}
    """

    beta: float = BETA
    beta_of: Mapping[str, float] = field(default_factory=dict)
    trigger: float = 0.2
    stable_s: float = 15.0
    changing_s: float = 10.0
    name: str = "es-stream"
    eta: float = 0.5
    phi: float = 0.7
    chi: float = 0.0
    zeta: float = 0.3
    most_load: float = 0.8
    backup_s: float = 0.5
    repair_s: float = 2.0

    def __post_init__(self) -> None:
        for beta in (self.beta, *self.beta_of.values()):
            require(0 < beta < 1, f"beta is {beta}: give the share of a node one instance takes, between 0 and 1")
        require_number(self.trigger, "trigger", above=True)
        require_number(self.stable_s, "stable_s")
        require_number(self.changing_s, "changing_s")
        self._nodes()
        self._rule()

    def _nodes(self) -> NodeThresholds:
        return NodeThresholds(self.eta, self.phi, self.chi, self.zeta, *(self.most_load,) * 3)

    def _rule(self) -> BackupRule:
        return BackupRule(self.backup_s, self.most_load, repair_s=self.repair_s)

    @property
    def placing(self) -> dict[str, object]:
        """Options of its placer."""
        return {"nodes": self._nodes(), "trigger": self.trigger}

    def start(self) -> EsStreamMemory | None:
        return None

    def propose(self, memory: EsStreamMemory | None, situation: Situation) -> tuple[EsStreamMemory | None, Proposal]:
        memory, proposal = self._instances(memory, situation)
        paces = backup_paces(situation, proposal.processors, self._rule())
        reasons = tuple(f"pace of {name}: {one.reason}" for name, one in paces.items())
        intervals = {name: one.interval_s for name, one in paces.items()}
        return memory, replace(proposal, pace_s=intervals, reasons=(*proposal.reasons, *reasons))

    def _instances(self, memory: EsStreamMemory | None, situation: Situation) -> tuple[EsStreamMemory | None, Proposal]:
        """Algorithm 1 if it is due; else the last plan."""
        due, why = self._due(memory, situation)
        if memory is not None and not due:
            return memory, proposal_within(memory.wanted, (why,), situation, memory.keeps_up)
        found = self.best_upstream_first(situation)
        wanted = {name: best.servers for name, (_, best) in found.items()}
        keeps_up = all(best.keeps_up for _, best in found.values())
        reasons = (why, *(self._explain(situation, name, *found[name]) for name in situation.topology.names))
        memory = EsStreamMemory(situation.now_s, situation.arrivals_per_s, _offered(situation), wanted, keeps_up)
        return memory, proposal_within(wanted, reasons, situation, keeps_up)

    def best_upstream_first(self, situation: Situation) -> dict[str, tuple[float, BestServers]]:
        """Algorithm 1 for every operator: its future arrivals, and the best number of instances for them."""
        topology, limits = situation.topology, situation.limits
        given = situation.operator_arrivals_per_s
        arrivals = (
            {name: given.get(name, 0.0) for name in topology.names} if topology.has_loop else _external(situation)
        )
        outgoing: dict[str, list[tuple[str, float]]] = {}
        for edge in topology.inner_edges:
            outgoing.setdefault(edge.origin, []).append((edge.target, edge.selectivity))
        found: dict[str, tuple[float, BestServers]] = {}
        for name in topology.order:
            operator, here = topology.operator(name), arrivals[name]
            best = best_servers(here, operator.service_per_s, self.beta_of.get(name, self.beta))
            found[name] = here, best
            if not topology.has_loop:
                sent = min(here, limits.clamp(name, best.servers) * operator.service_per_s)
                for target, selectivity in outgoing.get(name, ()):
                    arrivals[target] += sent * selectivity
        return found

    def _due(self, memory: EsStreamMemory | None, situation: Situation) -> tuple[bool, str]:
        if memory is None or set(memory.wanted) != set(situation.topology.names):
            return True, f"first plan of these operators, for {rate(situation.arrivals_per_s)}"
        waited = situation.now_s - memory.adjusted_at_s
        change = _change(memory.rate_per_s, situation.arrivals_per_s)
        moved = f"input {rate(memory.rate_per_s)} -> {rate(situation.arrivals_per_s)} ({change:+.0%})"
        if abs(change) > self.trigger:
            if waited >= self.changing_s:
                return True, f"{moved}, beyond {self.trigger:.0%}"
            return False, f"held: {moved}, but {waited:.3g} s of {self.changing_s:g} s passed since the last adjustment"
        name, drift = self._largest_drift(memory, situation)
        if abs(drift) > self.trigger and waited >= self.stable_s:
            return True, f"{moved}, but the load of {name} is {drift:+.0%} off its plan, beyond {self.trigger:.0%}"
        return False, f"held: {moved}, within {self.trigger:.0%}"

    def _largest_drift(self, memory: EsStreamMemory, situation: Situation) -> tuple[str, float]:
        offered = _offered(situation)
        drifts = {name: _change(memory.offered.get(name, 0.0), offered[name]) for name in situation.topology.names}
        worst = max(drifts, key=lambda name: abs(drifts[name]))
        return worst, drifts[worst]

    def _explain(self, situation: Situation, name: str, arrivals_per_s: float, best: BestServers) -> str:
        operator = situation.topology.operator(name)
        load = f"{rate(arrivals_per_s)} at {rate(operator.service_per_s)} each"
        if not best.keeps_up:
            return f"{name}: {best.servers:,} instances cannot keep up with {load}; lower the rate or speed it up"
        last = (
            "is needed to keep up" if math.isinf(best.last_gain) else f"takes {best.last_gain:.3g} rows off the queue"
        )
        return (
            f"{name}: {_have(situation, operator)}{best.servers} instances for {load}: the last {last}, one more would "
            f"take {best.next_gain:.3g}, an instance is worth {best.price:.3g}"
        )


def _have(situation: Situation, operator: Operator) -> str:
    have = situation.running.get(operator.name)
    return "" if have is None else f"{have} -> "


def _external(situation: Situation) -> dict[str, float]:
    topology = situation.topology
    arrivals = dict.fromkeys(topology.names, 0.0)
    for edge in topology.edges:
        if is_source(edge.origin):
            arrivals[edge.target] += situation.arrivals_per_s * topology.share_of(edge.origin) * edge.selectivity
    return arrivals


def _offered(situation: Situation) -> dict[str, float]:
    return {
        operator.name: situation.operator_arrivals_per_s.get(operator.name, 0.0) / operator.service_per_s
        for operator in situation.topology.operators
    }


def _change(before: float, now: float) -> float:
    """Relative change; infinite from zero to a positive value."""
    if before == now:
        return 0.0
    return now / before - 1 if before > 0 else math.inf
