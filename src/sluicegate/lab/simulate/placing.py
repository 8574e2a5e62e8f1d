"""Places threads on slots of machines: which server of an operator runs where, and which groups share a CPU."""

from __future__ import annotations

import numpy as np

from sluicegate.domain import Operator, Placement
from sluicegate.lab.simulate import records
from sluicegate.lab.simulate.records import Net
from sluicegate.lab.simulate.scenario import Scenario
from sluicegate.model.task_profile import rate_per_s, usage


def hosts_of(placement: Placement, name: str) -> list[str]:
    """The slot of each of an operator's servers, in their order.

    >>> from sluicegate.domain import Vm
    >>> hosts_of(Placement((Vm("vm1", 2),), {"vm1/1": (("a", 2),), "vm1/2": (("b", 1), ("a", 1))}), "a")
    ['vm1/1', 'vm1/1', 'vm1/2']
    """
    return [slot for slot, threads in placement.threads(name).items() for _ in range(threads)]


def machine_of(slot: str) -> str:
    """The machine a slot, ``VM/NUMBER``, belongs to."""
    return slot.rpartition("/")[0]


def thread_per_s(scenario: Scenario, placement: Placement, name: str, slot: str) -> float:
    """The rate of one thread of an operator on a slot where all threads are busy."""
    operator = scenario.topology.operator
    there = [slot]
    if scenario.behaviour.pooled_cpu:
        there = [other for other in placement.slots if machine_of(other) == machine_of(slot)]
    demand = sum(
        cpu_used(operator(other), placement.threads(other)[one]) for one in there for other in _tenants(placement, one)
    )
    slower = _slower(operator(name), placement.threads(name)[slot]) * max(demand / len(there), 1.0)
    return operator(name).service_per_s / slower


def place(net: Net, scenario: Scenario, placement: Placement) -> Net:
    """The network with its servers grouped by slot; busy servers are counted in their new group."""
    groups, numbers = [(0, 0, 0, 0)], net.numbers.tolist()
    places, sizes = _shared(placement, scenario.behaviour.pooled_cpu)
    net.slots["group"] = 0
    for index, operator in enumerate(scenario.topology.operators):
        hosts = hosts_of(placement, operator.name)
        if operator.name in scenario.batches:
            slowest = min(thread_per_s(scenario, placement, operator.name, slot) for slot in hosts)
            net.nodes["per_row_s"][index] = 1 / (int(net.nodes["servers"][index]) * slowest)
            continue
        first, servers = int(net.nodes["first"][index]), int(net.nodes["servers"][index])
        for slot, threads in placement.threads(operator.name).items():
            members = [first + j for j, host in enumerate(hosts[:servers]) if host == slot]
            net.slots["group"][members] = len(groups)
            busy = int((net.slots["row"][members] > 0).sum())
            groups.append((places[slot], *_tables(operator, threads, numbers), busy))
    net = net._replace(
        groups=np.array(groups, dtype=records.GROUP),
        hosts=np.zeros(len(sizes), dtype=records.HOST),
        numbers=np.array(numbers),
    )
    net.hosts["slots"] = sizes
    for group in net.groups[1:]:
        net.hosts["demand"][group["host"]] += net.numbers[int(group["cpu"]) + int(group["busy"])]
    return net


def _shared(placement: Placement, pooled: bool) -> tuple[dict[str, int], list[float]]:
    """The CPU index of each slot, and the number of slots per CPU; a CPU is a slot's own, or a machine's if pooled."""
    if not pooled:
        return {slot: i for i, slot in enumerate(placement.slots)}, [1.0] * len(placement.slots)
    machines = list(dict.fromkeys(map(machine_of, placement.slots)))
    sizes = [float(sum(machine_of(slot) == machine for slot in placement.slots)) for machine in machines]
    return {slot: machines.index(machine_of(slot)) for slot in placement.slots}, sizes


def _tables(operator: Operator, threads: int, numbers: list[float]) -> tuple[int, int]:
    """Indices of two tables by the number of busy threads: slowdown of each thread, and CPU of all."""
    at = len(numbers)
    numbers += [1.0, *(_slower(operator, busy) for busy in range(1, threads + 1))]
    numbers += [0.0, *(cpu_used(operator, busy) for busy in range(1, threads + 1))]
    return at, at + threads + 1


def _slower(operator: Operator, busy: int) -> float:
    """Slowdown q mu / I(q); without a profile threads slow each other only by sharing CPU."""
    if operator.profile is None:
        return 1.0
    return busy * operator.service_per_s / rate_per_s(operator.profile, busy)


def cpu_used(operator: Operator, busy: int) -> float:
    """C(q): the share of a slot's CPU that ``busy`` threads use; without a profile, what each uses alone."""
    if operator.profile is None:
        return busy * operator.cpu
    return usage(operator.profile, busy).cpu


def _tenants(placement: Placement, slot: str) -> set[str]:
    return {name for name, threads in placement.slots[slot] if threads}
