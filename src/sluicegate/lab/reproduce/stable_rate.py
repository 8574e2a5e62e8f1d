"""Simulates a mapping to find its highest stable rate, the use of its VMs, and its latency.

A rate is stable if the latency's slope is at most 0.001 (the paper's criterion). By Little's law the slope of the mean
latency is the growth of the rows inside over the rate, which does not need latencies of unfinished rows.

Assumed: rows arrive evenly, tasks take the same time for every row (both as in the paper's set-up: a constant source
and fixed work), each thread has its own queue and gets rows in turn (shuffle grouping), or with slot-aware routing in
turn by shares (a low-discrepancy sequence). Threads slow each other by their profiles and by the CPU of their VM: a
slot is a process that the VM may run on any of its cores, only its memory is limited. Sources, sinks and transfers take
no time. A task that gets less than a hundredth of the capacity of one thread is assumed to use no CPU: the simulator
slows a row by the threads busy when it starts, and a task that is busy for microseconds, always at that moment, would
slow its neighbour permanently.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sluicegate.domain import Operator, Placement, ProfilePoint, Topology
from sluicegate.lab.simulate import Behaviour, World, advance, begin, deterministic, inside, shuffle, spread
from sluicegate.lab.simulate.distributions import constant
from sluicegate.lab.simulate.placing import hosts_of
from sluicegate.lab.simulate.scenario import RowRouting as Rows
from sluicegate.model.mapping_rate import Routing, mapping_rate
from sluicegate.model.task_profile import profile_of, usage
from sluicegate.model.traffic import visits

MOST_SLOPE = 0.001
_WARM_UP_S, _WATCHED_S = 150.0, 600.0
_SAMPLES = 60
_NEXT_TO_NOTHING = 0.01


@dataclass(frozen=True, eq=False, slots=True)
class Seen:
    """A run: slope and median of the latency; CPU and memory use as shares of each VM."""

    slope: float
    median_s: float | None
    cpu: dict[str, float]
    memory: dict[str, float]

    @property
    def stable(self) -> bool:
        return self.slope <= MOST_SLOPE


def watch(
    topology: Topology,
    placement: Placement,
    rate_per_s: float,
    routing: Routing = Routing.EVEN,
) -> Seen:
    """Simulate ``placement`` at ``rate_per_s``."""
    world = _world(topology, placement, rate_per_s, routing)
    advance(world, _WARM_UP_S)
    step_s = _WATCHED_S / _SAMPLES
    rows, use = [float(inside(world))], np.zeros((len(placement.slots), 2))
    medians: list[float] = []
    for i in range(1, _SAMPLES + 1):
        seen = advance(world, _WARM_UP_S + i * step_s)
        rows.append(float(inside(world)))
        use += _slot_use(world) / _SAMPLES
        if seen.sojourn is not None and seen.sojourn.p50_s is not None:
            medians.append(seen.sojourn.p50_s)
    growth_per_s = float(np.polyfit(np.arange(_SAMPLES + 1) * step_s, rows, 1)[0])
    cpu, memory = (_by_vm(placement, use[:, column]) for column in (0, 1))
    return Seen(growth_per_s / rate_per_s, float(np.median(medians)) if medians else None, cpu, memory)


def highest_stable(stable: Callable[[float], bool], step_per_s: float, most_per_s: float) -> float:
    """The highest multiple of the step, up to ``most_per_s``, that is stable; 0 if none is. By bisection.

    >>> highest_stable(lambda rate: rate < 47, 5.0, 100.0)
    45.0
    """
    low, high = 0, math.floor(most_per_s / step_per_s + 1e-9)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if stable(middle * step_per_s) else (low, middle - 1)
    return low * step_per_s


def stable_per_s(
    topology: Topology,
    placement: Placement,
    step_per_s: float,
    most_per_s: float,
    routing: Routing = Routing.EVEN,
) -> float:
    """The highest stable rate of a placement."""

    def stable(rate: float) -> bool:
        return watch(topology, placement, rate, routing).stable

    return highest_stable(stable, step_per_s, most_per_s)


def _world(topology: Topology, placement: Placement, rate_per_s: float, routing: Routing) -> World:
    bare = without_endpoints(topology, placement)
    behaviour = Behaviour(
        service=dict.fromkeys(topology.names, constant()),
        routing=_routed(topology, bare, routing),
        placement=bare,
        pooled_cpu=True,
    )
    threads = {name: sum(bare.threads(name).values()) for name in topology.names}
    lighter = _lightened(topology, rate_per_s)
    return begin(lighter, deterministic(rate_per_s), threads, seed=0, behaviour=behaviour)


def _routed(topology: Topology, placement: Placement, routing: Routing) -> dict[str, Rows]:
    """Routing in turn, or evenly spread by each thread's share of its slot's capacity."""
    if routing is Routing.EVEN:
        return dict.fromkeys(topology.names, shuffle())
    tasks = mapping_rate(topology, placement).tasks
    return {
        name: spread(*(task.slot_per_s[slot] / task.threads[slot] for slot in hosts_of(placement, name)))
        for name, task in tasks.items()
    }


def _lightened(topology: Topology, rate_per_s: float) -> Topology:
    """The topology with zero CPU for tasks that are almost idle."""
    busy = (visits(topology) * rate_per_s).tolist()
    pairs = zip(topology.operators, busy, strict=True)
    return topology.with_operators(tuple(o if r > _NEXT_TO_NOTHING * o.service_per_s else _idle(o) for o, r in pairs))


def _idle(operator: Operator) -> Operator:
    points = tuple(ProfilePoint(p.threads, p.rate_per_s, 0.0, p.memory) for p in profile_of(operator).points)
    return replace(operator, profile=replace(profile_of(operator), points=points))


def without_endpoints(topology: Topology, placement: Placement) -> Placement:
    """The placement of the operators alone: sources and sinks are not simulated."""
    groups = {slot: tuple(g for g in held if g[0] in topology.index) for slot, held in placement.slots.items()}
    return Placement(placement.vms, groups)


def _slot_use(world: World) -> NDArray[np.float64]:
    """CPU and memory used on each slot now: C and M of the busy threads, memory capped at the slot."""
    placement = world.scenario.behaviour.placement
    slots = list(placement.slots) if placement else []
    use = np.zeros((len(slots), 2))
    groups = iter(world.net.groups[1:])
    for operator in world.scenario.topology.operators:
        for slot in placement.threads(operator.name) if placement else ():
            use[slots.index(slot)] += usage(profile_of(operator), int(next(groups)["busy"]))
    return np.column_stack((use[:, 0], np.minimum(use[:, 1], 1.0)))


def _by_vm(placement: Placement, use: NDArray[np.float64]) -> dict[str, float]:
    found = dict.fromkeys((vm.name for vm in placement.vms), 0.0)
    for slot, used in zip(placement.slots, use.tolist(), strict=True):
        found[slot.rpartition("/")[0]] += used
    return {vm.name: min(found[vm.name] / vm.slots, 1.0) for vm in placement.vms}
