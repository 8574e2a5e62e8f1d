"""Builds a proposal from the allotment of each operator: endpoints, slots, limits (shared by LSA and MBA).

    slots = ceil(max(sum of CPU, sum of memory))       shares of a slot, over all bundles

Every source and sink is one thread with a fixed share of a slot; they are bundles, but not processors. A plan above
the budget is cut to the largest common share of the rates that fits and marked infeasible, with the need of the whole
rate as a reason.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain, repeat

from sluicegate.domain import SINK, Bundle, Limits, Operator, Proposal, Situation, TaskProfile, Topology, is_sink
from sluicegate.domain.figures import rate
from sluicegate.errors import BadInput
from sluicegate.model.task_profile import ENDPOINT_CPU, ROUNDING, Usage, corrected, usage_at


@dataclass(frozen=True, slots=True)
class Want:
    """One operator's arrival rate, and the fewest and most threads it may have."""

    operator: str
    profile: TaskProfile
    arrivals_per_s: float
    least: int
    most: int


@dataclass(frozen=True, slots=True)
class Part:
    """The allotment of one operator: its bundles, the rate they carry, and an explanation."""

    bundles: tuple[Bundle, ...]
    carried_per_s: float
    how: str


Allot = Callable[[Want], Part]


@dataclass(frozen=True, slots=True)
class Packer:
    """Options shared by LSA and MBA: the shares of a slot that the one thread of a source or a sink uses."""

    endpoint_cpu: float = ENDPOINT_CPU
    endpoint_memory: float = 0.0

    def __post_init__(self) -> None:
        for what, share in zip(("endpoint_cpu", "endpoint_memory"), self.endpoint, strict=True):
            if not 0 <= share <= 1:
                raise BadInput(f"{what} is {share}: give the share of a slot that a source or a sink uses, 0 to 1")

    @property
    def endpoint(self) -> Usage:
        return Usage(self.endpoint_cpu, self.endpoint_memory)

    def start(self) -> None:
        return None


@dataclass(frozen=True, slots=True)
class _Plan:
    """The parts of all operators at one share of the rate."""

    parts: Mapping[str, Part]
    processors: Mapping[str, int]
    bundles: tuple[Bundle, ...]
    slots: int

    @property
    def threads(self) -> int:
        return sum(self.processors.values())

    def within(self, budget: int | None) -> bool:
        return budget is None or max(self.threads, self.slots) <= budget


def slots_for(bundles: Iterable[Bundle]) -> int:
    """A lower bound on the slots that the bundles need (as if they could be split); at least 1 if there is a bundle.

    >>> slots_for([Bundle("a", 50, 1.0, 1.0, full=True), Bundle("b", 1, 0.3, 0.9), Bundle("c", 1, 0.2, 0.1)])
    2
    """
    bundles = tuple(bundles)
    need = max(math.fsum(b.cpu for b in bundles), math.fsum(b.memory for b in bundles))
    return max(math.ceil(need * (1 - ROUNDING)), 1 if bundles else 0)


def whole_units(rate_per_s: float, unit_per_s: float, most: int) -> tuple[int, float]:
    """How many whole ``unit_per_s`` fit into the rate, at most ``most``, and the remaining rate.

    >>> whole_units(50.0, 30.0, most=9), whole_units(0.3, 0.1, most=9), whole_units(50.0, 10.0, most=2)
    ((1, 20.0), (3, 0.0), (2, 30.0))
    """
    count = int(min(rate_per_s / unit_per_s + ROUNDING, most))
    rest = rate_per_s - count * unit_per_s
    return count, rest if rest > ROUNDING * unit_per_s else 0.0


def spare_threads(want: Want, have: int) -> tuple[Bundle, ...]:
    """Single threads that raise ``have`` to the least; rows are routed evenly, so each takes its share of the rate."""
    if have >= want.least:
        return ()
    cpu, memory = usage_at(want.profile, 1, want.arrivals_per_s / want.least)
    return (Bundle(want.operator, 1, cpu, memory),) * (want.least - have)


def propose(situation: Situation, allot: Allot, endpoint: Usage) -> Proposal:
    """The proposal of a planner that allots threads to each operator separately."""
    wants = _wants(situation)
    whole = _plan(situation.topology, wants, allot, endpoint, 1.0)
    short = [
        f"{want.operator}: limits allow {want.most} threads, which carry {rate(part.carried_per_s)} of "
        f"{rate(want.arrivals_per_s)}: raise most for it"
        for want, part in zip(wants, whole.parts.values(), strict=True)
        if part.carried_per_s < want.arrivals_per_s * (1 - 2 * ROUNDING)
    ]
    budget = situation.limits.budget
    plan = whole
    if not whole.within(budget):
        plan, share = _cut(situation.topology, wants, allot, endpoint, budget)
        kept = f"this plan carries {share:.1%} of it with {plan.threads} threads on {plan.slots}"
        short.append(
            f"budget {budget}: the whole rate needs {whole.threads} threads on {whole.slots} slots; "
            + (kept if plan.within(budget) else f"even the least of each operator is {plan.threads} threads")
        )
    cpu, memory = math.fsum(b.cpu for b in plan.bundles), math.fsum(b.memory for b in plan.bundles)
    total = f"{plan.slots} slots = ceil(max(CPU {cpu:.2f}, memory {memory:.2f})), {plan.threads} threads"
    stale = [why for o in situation.topology.operators if (why := _profile(situation, o)[1]) is not None]
    reasons = (*short, total, *stale, *(part.how for part in plan.parts.values()))
    return Proposal(plan.processors, reasons, not short, plan.bundles, plan.slots)


def _wants(situation: Situation) -> list[Want]:
    limits, rates = situation.limits, situation.operator_arrivals_per_s
    return [
        Want(o.name, _profile(situation, o)[0], _rate(rates, o.name), *_bounds(limits, o.name))
        for o in situation.topology.operators
    ]


def _profile(situation: Situation, operator: Operator) -> tuple[TaskProfile, str | None]:
    """The profile corrected by the learned service rate, and the reason for the correction, if any."""
    return corrected(operator, situation.service_rsd.get(operator.name, 0.0))


def _bounds(limits: Limits, name: str) -> tuple[int, int]:
    most = limits.most_for(name)
    return min(limits.least_for(name), most), most


def _rate(rates: Mapping[str, float], name: str) -> float:
    rate = rates.get(name)
    if rate is None or not (math.isfinite(rate) and rate >= 0):
        raise BadInput(f"arrival rate of {name!r} is {rate}: give a finite rate, 0 or more, per second")
    return rate


def _plan(topology: Topology, wants: list[Want], allot: Allot, endpoint: Usage, share: float) -> _Plan:
    parts = {want.operator: allot(_scaled(want, share)) for want in wants}
    processors = {name: sum(bundle.threads for bundle in part.bundles) for name, part in parts.items()}
    inner = [bundle for part in parts.values() for bundle in part.bundles]
    sinks = dict.fromkeys(e.target for e in topology.edges if is_sink(e.target)) or {SINK: None}
    ends = {name: Bundle(name, 1, endpoint.cpu, endpoint.memory) for name in (*topology.sources, *sinks)}
    bundles = (*(ends[s] for s in topology.sources), *inner, *(ends[s] for s in sinks))
    return _Plan(parts, processors, bundles, slots_for(bundles))


def _scaled(want: Want, share: float) -> Want:
    if share == 1.0:
        return want
    return Want(want.operator, want.profile, want.arrivals_per_s * share, want.least, want.most)


def _cut(
    topology: Topology, wants: list[Want], allot: Allot, endpoint: Usage, budget: int | None
) -> tuple[_Plan, float]:
    """The plan for the largest share of the rate within the budget, by bisection (to 1e-4); share 0 if none fits."""
    low, high = 0.0, 1.0
    best = _plan(topology, wants, allot, endpoint, 0.0)
    while best.within(budget) and high - low > 1e-4:
        middle = (low + high) / 2
        plan = _plan(topology, wants, allot, endpoint, middle)
        if plan.within(budget):
            low, best = middle, plan
        else:
            high = middle
    return best, low


def bundles_of(topology: Topology, running: Mapping[str, int], proposal: Proposal | None = None) -> tuple[Bundle, ...]:
    """The bundles to place for ``running``: the proposal's if it packed exactly this, else one per processor.

    >>> from sluicegate.domain import Edge, Operator
    >>> one = Topology("t", (Operator("a", 9.0, cpu=0.5),), (Edge("source", "a"),))
    >>> [(b.threads, b.cpu) for b in bundles_of(one, {"a": 2})]
    [(1, 0.5), (1, 0.5)]
    """
    if proposal is not None and proposal.bundles and dict(proposal.processors) == dict(running):
        return proposal.bundles
    single = {o.name: Bundle(o.name, 1, min(o.cpu, 1.0), min(o.memory, 1.0)) for o in topology.operators}
    return tuple(chain.from_iterable(repeat(single[name], running[name]) for name in topology.names))
