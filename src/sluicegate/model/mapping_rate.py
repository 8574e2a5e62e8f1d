"""The rate that a mapping of threads to slots sustains, and the load of each VM (model-driven scheduling, Section 8.5).

A task with q_s threads on slot s, tau = sum of q_s in all, sustains

    sum over s of I(q_s)               if each slot gets rows in proportion to I(q_s): slot-aware routing
    min over s of I(q_s) tau/q_s       if each thread gets as many rows as the next: even routing

and the pipeline sustains the least over tasks of that, divided by the task's rows for each row of the pipeline. The
paper predicts the sum although its platform routes evenly; the sum is never below the even rate, and routing in the
shares given here reaches it. At a rate r <= I(q) a slot uses r/I(q) of C(q) and M(q); above I(q) usage stays at that
maximum. As in the paper, tasks on one slot are assumed not to interfere with each other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from sluicegate.domain import Placement, TaskProfile, Topology
from sluicegate.errors import BadInput
from sluicegate.model.task_profile import ENDPOINT_CPU, Usage, profile_of, rate_per_s, usage_at
from sluicegate.model.traffic import visits


class Routing(Enum):
    """How the rows of a task are distributed over its slots."""

    EVEN = "even"
    SLOT_AWARE = "slot-aware"


@dataclass(frozen=True, slots=True)
class TaskRate:
    """One task's threads per slot and the rate I(q_s) that they sustain there."""

    threads: Mapping[str, int]
    slot_per_s: Mapping[str, float]

    def rate_per_s(self, routing: Routing) -> float:
        """The rate that the task sustains; 0 without threads."""
        if routing is Routing.SLOT_AWARE:
            return math.fsum(self.slot_per_s.values())
        total = sum(self.threads.values())
        return min((rate * total / self.threads[slot] for slot, rate in self.slot_per_s.items()), default=0.0)

    def shares(self, routing: Routing) -> dict[str, float]:
        """The share of the task's rows that each slot gets."""
        weights: Mapping[str, float] = self.threads if routing is Routing.EVEN else self.slot_per_s
        total = math.fsum(weights.values())
        return {slot: weight / total for slot, weight in weights.items()}


@dataclass(frozen=True, slots=True)
class MappingRate:
    """The rates that a mapping sustains: per task, and for the pipeline under either routing."""

    tasks: Mapping[str, TaskRate]
    visits: Mapping[str, float]

    def rate_per_s(self, routing: Routing) -> float:
        """The highest rate of the pipeline; ``inf`` if no row reaches any task."""
        rates = (self.tasks[name].rate_per_s(routing) / visits for name, visits in self.visits.items() if visits > 0)
        return min(rates, default=math.inf)


@dataclass(frozen=True, slots=True)
class VmLoad:
    """CPU and memory that a VM with ``slots`` slots uses, in units of a slot."""

    slots: int
    cpu: float
    memory: float


def task_rate(profile: TaskProfile, threads: Mapping[str, int]) -> TaskRate:
    """The rates of one task with ``threads`` by slot.

    >>> from sluicegate.domain import ProfilePoint
    >>> points = (ProfilePoint(1, 3.0, 0.1, 0.1), ProfilePoint(40, 20.0, 0.3, 0.1), ProfilePoint(60, 40.0, 0.5, 0.2))
    >>> table = task_rate(TaskProfile("table", points), {"vm-1/1": 60, "vm-1/2": 60, "vm-1/3": 40})
    >>> table.rate_per_s(Routing.SLOT_AWARE), table.rate_per_s(Routing.EVEN), table.shares(Routing.SLOT_AWARE)
    (100.0, 80.0, {'vm-1/1': 0.4, 'vm-1/2': 0.4, 'vm-1/3': 0.2})
    """
    used = {slot: count for slot, count in threads.items() if count > 0}
    return TaskRate(used, {slot: rate_per_s(profile, count) for slot, count in used.items()})


def mapping_rate(topology: Topology, placement: Placement) -> MappingRate:
    """The rates that ``placement`` sustains; 0 if a task that rows reach has no thread."""
    by_task = _threads_by_task(placement)
    tasks = {o.name: task_rate(profile_of(o), by_task.get(o.name, {})) for o in topology.operators}
    reach = dict(zip(topology.names, map(float, visits(topology)), strict=True))
    return MappingRate(tasks, reach)


def vm_loads(
    topology: Topology,
    placement: Placement,
    pipeline_per_s: float,
    routing: Routing = Routing.EVEN,
) -> dict[str, VmLoad]:
    """CPU and memory of each VM at a pipeline rate of ``pipeline_per_s``, with the threads of sources and sinks."""
    if not (math.isfinite(pipeline_per_s) and pipeline_per_s >= 0):
        raise BadInput(f"pipeline rate {pipeline_per_s}: give a finite rate, 0 or more, per second")
    predicted = mapping_rate(topology, placement)
    loads = {vm.name: [0.0, 0.0] for vm in placement.vms}
    for name, task in predicted.tasks.items():
        profile, arrivals = profile_of(topology.operator(name)), pipeline_per_s * predicted.visits[name]
        for slot, share in task.shares(routing).items():
            _add(loads, slot, usage_at(profile, task.threads[slot], arrivals * share), 1)
    for slot, groups in placement.slots.items():
        _add(loads, slot, Usage(ENDPOINT_CPU, 0.0), sum(count for name, count in groups if name not in topology.index))
    return {vm.name: VmLoad(vm.slots, *loads[vm.name]) for vm in placement.vms}


def _add(loads: dict[str, list[float]], slot: str, used: Usage, times: int) -> None:
    load = loads[slot.rpartition("/")[0]]
    load[0] += used.cpu * times
    load[1] += used.memory * times


def _threads_by_task(placement: Placement) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for slot, groups in placement.slots.items():
        for name, count in groups:
            on = found.setdefault(name, {})
            on[slot] = on.get(slot, 0) + count
    return found
