"""Plans a deployment: from topology, rate and goal to processors, slots, machines, mapping and predictions.

Combines policy, placer and models; the command line only prints the result.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from sluicegate.control.settings import Known, policy_for
from sluicegate.domain import Bundle, Goal, Limits, Operator, Placement, Prediction, Proposal, Situation, Topology
from sluicegate.domain.figures import rate
from sluicegate.errors import Infeasible
from sluicegate.model.mapping_rate import Routing, VmLoad, mapping_rate, vm_loads
from sluicegate.model.sojourn import predict
from sluicegate.model.traffic import with_source_rates
from sluicegate.place.catalogue import COMPARES_EVERY_NODE, placer
from sluicegate.place.extra_slots import place_with_extra_slots
from sluicegate.policy.allotment import bundles_of
from sluicegate.policy.catalogue import policy_entry
from sluicegate.policy.demand import situation_at, stations_of
from sluicegate.policy.pace import paced_mean_s
from sluicegate.policy.settle import settle
from sluicegate.policy.spread import sustained_per_s
from sluicegate.policy.vms import VM_SIZES, rent

if TYPE_CHECKING:
    from sluicegate.policy.catalogue import AnyPolicy

MOST_MAPPED_THREADS = 200_000
"""Larger plans are not mapped, as nobody reads the result; half cuts plans that are read, double only takes longer."""
MOST_COMPARED = 10 * MOST_MAPPED_THREADS
"""Threads x nodes for mappers that compare every node for every thread: about 10 s, at double 20 s."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that `sluicegate plan` prints."""

    policy: str
    topology: Topology
    rate_per_s: float
    proposal: Proposal
    slots: int
    extra_slots: int
    vm_sizes: tuple[int, ...]
    mapping: Mapping[str, tuple[tuple[str, int], ...]]
    predicted: Prediction
    cost_per_hour: float
    feasible: bool
    reasons: tuple[str, ...]
    vm_loads: Mapping[str, VmLoad] = field(default_factory=dict)
    routing: Routing = Routing.EVEN


def make_plan(
    topology: Topology,
    rate_per_s: float,
    policy: str,
    goal: Goal | None = None,
    limits: Limits | None = None,
    mapper: str | None = None,
    vm_sizes: tuple[int, ...] = VM_SIZES,
    source_rates: Mapping[str, float] | None = None,
    routing: Routing = Routing.EVEN,
    options: Mapping[str, object] | None = None,
) -> Plan:
    """The plan of one policy; if the goal cannot be met, the best possible one with ``feasible`` false and a reason.

    >>> from sluicegate.domain import Edge
    >>> one = Topology("t", (Operator("a", 10.0),), (Edge("source", "a"),))
    >>> plan = make_plan(one, 25.0, "drs", Goal(mean_s=0.2))
    >>> plan.proposal.processors, plan.slots, plan.vm_sizes, round(plan.predicted.sojourn.mean_s, 3)
    ({'a': 4}, 4, (4,), 0.121)
    """
    goal, limits, entry = goal or Goal(), limits or Limits(), policy_entry(policy)
    topology = with_source_rates(topology, rate_per_s, source_rates)
    situation = situation_at(topology, rate_per_s, goal, limits, source_rates)
    proposal = proposal_at(policy_for(policy, known=Known(load_per_s=(rate_per_s,)), options=options), situation)
    bundles = bundles_of(topology, proposal.processors, proposal)
    needed = _slots(proposal, bundles)
    placement, notes = _mapped(topology, bundles, needed, mapper or entry.mapper, vm_sizes)
    fleet = rent(needed + placement.extra_slots, vm_sizes, limits.price_per_slot_hour)
    predicted = _predicted(topology, rate_per_s, proposal, placement, source_rates, routing)
    broken = _broken(goal, predicted, fleet.cost_per_hour)
    enough = predicted.rate_per_s >= rate_per_s * (1 - 1e-9)
    return Plan(
        policy=policy,
        topology=topology,
        rate_per_s=rate_per_s,
        proposal=proposal,
        slots=needed + placement.extra_slots,
        extra_slots=placement.extra_slots,
        vm_sizes=fleet.sizes,
        mapping=placement.slots,
        predicted=predicted,
        cost_per_hour=fleet.cost_per_hour,
        feasible=proposal.feasible and enough and not broken,
        reasons=(
            *proposal.reasons,
            *notes,
            *placement.reasons,
            *_strained(predicted, rate_per_s),
            *_paced(situation, proposal),
            *broken,
        ),
        vm_loads=_loads(topology, placement, min(rate_per_s, predicted.rate_per_s), routing),
        routing=routing,
    )


def _loads(topology: Topology, placement: Placement, rate_per_s: float, routing: Routing) -> Mapping[str, VmLoad]:
    """CPU and memory of every machine at the carried rate; empty without profiles."""
    if not placement.slots or not any(operator.profile for operator in topology.operators):
        return {}
    return vm_loads(topology, placement, rate_per_s, routing)


def proposal_at(policy: AnyPolicy, situation: Situation, settled: bool = True) -> Proposal:
    """The proposal of a policy, from a fresh memory, under the constant load of ``situation``.

    A reactive policy finds its size by trial: it is simulated on modelled measurements until it converges. With
    ``settled`` false it is called only once.

    >>> from sluicegate.domain import Edge
    >>> one = Topology("t", (Operator("a", 10.0),), (Edge("source", "a"),))
    >>> proposal_at(policy_for("ds2"), situation_at(one, 25.0)).processors
    {'a': 3}
    """
    if not policy_entry(policy.name).reactive or not settled:
        return policy.propose(policy.start(), situation)[1]
    rate_per_s = situation.arrivals_per_s
    proposal, steps = settle(policy, situation.topology, rate_per_s, situation.goal, situation.limits)
    note = f"reactive policy: simulated at a constant {rate(rate_per_s)} for {steps} steps of a minute"
    return replace(proposal, reasons=(note, *proposal.reasons))


def _slots(proposal: Proposal, bundles: tuple[Bundle, ...]) -> int:
    """The planner's slot count, else ceil(max(sum of CPU, sum of memory)), at least one."""
    if proposal.slots is not None:
        return proposal.slots
    return max(math.ceil(max(sum(b.cpu for b in bundles), sum(b.memory for b in bundles)) - 1e-9), 1)


def _mapped(
    topology: Topology, bundles: tuple[Bundle, ...], slots: int, mapper: str, vm_sizes: tuple[int, ...]
) -> tuple[Placement, tuple[str, ...]]:
    chosen = placer(mapper)
    threads = sum(bundle.threads for bundle in bundles)
    most = MOST_MAPPED_THREADS
    if mapper in COMPARES_EVERY_NODE:
        most = min(most, max(MOST_COMPARED // math.ceil(slots / max(vm_sizes)), 1))
    if threads > most:
        return Placement((), {}), (
            f"not mapped: {threads:,} threads, {mapper} maps at most {most:,} on {slots:,} slots",
        )
    try:
        placement = place_with_extra_slots(chosen, topology, bundles, slots, vm_sizes)
    except Infeasible as problem:
        return Placement((), {}), (f"not mapped: {problem}",)
    extra = f", {placement.extra_slots} of them extra" if placement.extra_slots else ""
    return placement, (f"{mapper} maps {threads} threads to {slots + placement.extra_slots} slots{extra}",)


def _predicted(
    topology: Topology,
    rate_per_s: float,
    proposal: Proposal,
    placement: Placement,
    source_rates: Mapping[str, float] | None,
    routing: Routing,
) -> Prediction:
    """Latency and rate of the plan; threads that share a slot have the joint rate of their profile."""
    real = topology.with_operators(_as_placed(topology, proposal, placement, routing))
    return predict_allocation(real, rate_per_s, proposal.processors, source_rates)


def predict_allocation(
    topology: Topology,
    rate_per_s: float,
    processors: Mapping[str, int],
    source_rates: Mapping[str, float] | None = None,
) -> Prediction:
    """Predicted latency and sustained rate of an allocation.

    >>> from sluicegate.domain import Edge
    >>> one = Topology("t", (Operator("a", 10.0),), (Edge("source", "a"),))
    >>> round(predict_allocation(one, 6.0, {"a": 1}).sojourn.mean_s, 3)
    0.25
    """
    topology = with_source_rates(topology, rate_per_s, source_rates)
    stations = stations_of(situation_at(topology, rate_per_s, source_rates=source_rates))
    return predict(topology, stations, processors, sustained_per_s(topology, dict(processors)))


def _as_placed(topology: Topology, proposal: Proposal, placement: Placement, routing: Routing) -> tuple[Operator, ...]:
    if not placement.slots or not any(operator.profile for operator in topology.operators):
        return topology.operators
    tasks = mapping_rate(topology, placement).tasks
    return tuple(
        replace(o, service_per_s=tasks[o.name].rate_per_s(routing) / proposal.processors[o.name])
        if o.profile is not None and tasks[o.name].threads
        else o
        for o in topology.operators
    )


def _strained(predicted: Prediction, rate_per_s: float) -> tuple[str, ...]:
    """Warnings for a plan without spare capacity."""
    carried = predicted.rate_per_s
    if carried < rate_per_s * (1 - 1e-9):
        return (f"carries {rate(carried, 6)}, {rate(rate_per_s, 6)} arrive: queues grow",)
    if math.isinf(predicted.sojourn.mean_s):
        return (f"carries {rate(carried, 6)}, exactly the load: no spare capacity, so queues never settle",)
    return ()


def _paced(situation: Situation, proposal: Proposal) -> tuple[str, ...]:
    """The mean with batches at the planned pace: the prediction is of batches that follow each other at once."""
    longest_s = max(proposal.pace_s.values(), default=0.0)
    if not longest_s:
        return ()
    stations = stations_of(situation)
    k = np.array([proposal.processors[name] for name in stations.names], dtype=np.int64)
    mean_s = paced_mean_s(stations, k, proposal.pace_s)
    return (f"to cost less, batches start at most every {longest_s:.3g} s: then the mean is {mean_s:.4g} s",)


def _broken(goal: Goal, predicted: Prediction, cost_per_hour: float) -> tuple[str, ...]:
    """The goals that the plan does not meet."""
    sojourn = predicted.sojourn
    reached = sojourn.by_name
    late = [
        f"goal {what} <= {bound:.4g} s is not kept: {value:.4g} s"
        for what, bound in goal.latency_bounds.items()
        if (value := reached[what]) is not None and value > bound * (1 + 1e-9)
    ]
    if goal.cost_per_hour is not None and cost_per_hour > goal.cost_per_hour * (1 + 1e-9):
        late.append(f"goal cost <= {goal.cost_per_hour:g} an hour is not kept: {cost_per_hour:.4g}")
    return tuple(late)
