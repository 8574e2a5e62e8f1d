"""Builds observations of a running network from the differences of its totals between two moments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sluicegate.domain import Batch, NodeObservation, Observation, OperatorObservation, Sojourn
from sluicegate.lab.simulate.placing import cpu_used, machine_of
from sluicegate.lab.simulate.records import BATCHED, SHARED, WORKING, Counts, Net, Records, rows_inside
from sluicegate.lab.simulate.scenario import Scenario
from sluicegate.lab.simulate.statistics import quantile

_FEWEST_FOR_SCV = 30
"""With fewer gaps or services the scv is not reported."""
_NEVER_IDLE = 0.999
_NEVER_IDLE_IN_BATCHES = 0.95
"""A saturated operator in batches is below 1, since batches spend part of their time on overhead."""


@dataclass(frozen=True, eq=False, slots=True)
class Mark:
    """The totals at one moment."""

    at_s: float
    nodes: Records
    totals: Records
    histogram: Counts


def mark(net: Net, now_s: float = 0.0) -> Mark:
    return Mark(now_s, net.nodes.copy(), net.totals.copy(), net.histogram.copy())


def observe(
    scenario: Scenario, net: Net, since: Mark, now_s: float, running: Mapping[str, int], offered_s: Mapping[str, float]
) -> Observation:
    """The observation from ``since`` to now; ``offered_s`` are the processor-seconds each operator had."""
    took_s = now_s - since.at_s
    totals = {what: float(net.totals[what][0] - since.totals[what][0]) for what in ("inputs", "completed", "total")}
    operators = {
        name: _operator(net, since, index, took_s, offered_s.get(name, 0.0))
        for index, name in enumerate(scenario.topology.names)
    }
    at_work = int((net.slots["row"] > 0).sum())
    in_batches = int(net.slots["size"][net.slots["phase"] == WORKING].sum())
    backlog = rows_inside(net) - at_work - in_batches
    return Observation(
        at_s=now_s,
        arrivals_per_s=totals["inputs"] / took_s,
        running=dict(running),
        operators=operators,
        sojourn=_sojourn(totals["total"], totals["completed"], net.histogram - since.histogram),
        throughput_per_s=totals["completed"] / took_s,
        backlog_rows=float(backlog),
        nodes=_machines(scenario, operators),
        pending_tasks=None if scenario.batches else backlog,
        running_tasks=None if scenario.batches else at_work,
    )


def _sojourn(total_s: float, completed: float, counted: Counts) -> Sojourn | None:
    """The mean of DRS Eq 4 and quantiles of the time to completion, over completed inputs."""
    if completed == 0:
        return None
    return Sojourn(total_s / completed, quantile(counted, 0.50), quantile(counted, 0.95), quantile(counted, 0.99))


def _operator(net: Net, since: Mark, index: int, took_s: float, offered_s: float) -> OperatorObservation:
    node, before = net.nodes[index], since.nodes[index]
    arrivals, done = int(node["arrivals"] - before["arrivals"]), int(node["done"] - before["done"])
    busy_s = float(node["busy"] - before["busy"])
    batched = node["discipline"] == BATCHED
    gaps_s = float(node["last_arrival"] - before["last_arrival"])
    utilisation = min(busy_s / offered_s, 1.0) if offered_s > 0 else None
    batches = _batches(net, index)
    return OperatorObservation(
        arrivals_per_s=arrivals / took_s,
        service_per_s=done / busy_s if busy_s > 0 and done else None,
        arrival_scv=_scv(arrivals, gaps_s, float(node["gap_squares"] - before["gap_squares"])),
        service_scv=None if batched else _scv(done, busy_s, float(node["busy_squares"] - before["busy_squares"])),
        utilisation=utilisation,
        queue_rows=float(node["waited"] - before["waited"]) / took_s,
        backpressure=min(float(node["held"] - before["held"]) / took_s, 1.0),
        sojourn_s=float(node["sojourn"] - before["sojourn"]) / done if done else None,
        saturated_per_s=_saturated(utilisation, done / took_s, batches, bool(batched)),
        instance_queues=_instance_queues(net, index),
        batches=batches,
    )


def _scv(count: int, total: float, squares: float) -> float | None:
    if count < _FEWEST_FOR_SCV or total <= 0:
        return None
    return max(squares * count / total**2 - 1, 0.0)


def _saturated(utilisation: float | None, done_per_s: float, batches: tuple[Batch, ...], batched: bool) -> float | None:
    """The throughput, if the operator was saturated; else ``None``."""
    if utilisation is None or utilisation < (_NEVER_IDLE_IN_BATCHES if batched else _NEVER_IDLE):
        return None
    if not batched:
        return done_per_s
    took_s = sum(batch.duration_s for batch in batches)
    return sum(batch.rows for batch in batches) / took_s if took_s > 0 else None


def _instance_queues(net: Net, index: int) -> tuple[float, ...]:
    node = net.nodes[index]
    if node["discipline"] in (SHARED, BATCHED):
        return ()
    first = int(node["first"])
    return tuple(float(rows) for rows in net.slots["waiting"][first : first + int(node["servers"])])


def _batches(net: Net, index: int) -> tuple[Batch, ...]:
    seen = net.log[: int(net.totals["logged"][0])]
    own = seen[seen["node"] == index]
    return tuple(Batch(float(b["rows"]), int(b["tasks"]), float(b["duration"]), float(b["work"])) for b in own)


def _machines(scenario: Scenario, operators: Mapping[str, OperatorObservation]) -> tuple[NodeObservation, ...]:
    """CPU load of each machine: the CPU of its threads when busy, times the utilisation of their operator."""
    placement = scenario.behaviour.placement
    if placement is None:
        return ()
    cpu = {vm.name: 0.0 for vm in placement.vms}
    hosts: dict[str, dict[str, int]] = {vm.name: {} for vm in placement.vms}
    for slot, groups in placement.slots.items():
        machine = machine_of(slot)
        for name, threads in groups:
            busy = operators[name].utilisation or 0.0
            cpu[machine] += busy * cpu_used(scenario.topology.operator(name), threads)
            hosts[machine][name] = hosts[machine].get(name, 0) + threads
    return tuple(
        NodeObservation(vm.name, cpu=float(np.clip(cpu[vm.name] / vm.slots, 0, 1)), hosts=hosts[vm.name])
        for vm in placement.vms
    )
