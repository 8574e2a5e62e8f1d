"""Top_N on a cluster: reader -> count -> rank -> merge, one chain an application, simulated for a given deployment.

The paper gives neither service times nor the cost of a hop. Ours:

    compute    0.6, 2.4, 1.2 and 0.4 ms a row at reader, count, rank and merge
    remote     1.5 ms of CPU at the receiver for a row from another node (deserialisation), and 1 ms on the wire
    nodes      4 cores each, which all instances on the node share; the paper's three kinds are taken as equal
    queues     64 rows per instance; a full one blocks its sender

The remote cost is chosen so that the default scheduler fills 32 nodes with 14 applications at 1,000 rows/s, as in the
paper. It matters that all instances of a node share its cores: with each bound to one core, algorithm 3 fills one core
after the other and does worse than the default. Latency is a row's time from admission to leaving merge; waiting
outside a full cluster is not included. Throughput counts the rows that leave, in input rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from sluicegate.domain import Edge, Observation, Operator, Placement, Topology, Vm
from sluicegate.lab.simulate import Behaviour, advance, begin, shuffle, weighted

COMPUTE_S = {"reader": 0.0006, "count": 0.0024, "rank": 0.0012, "merge": 0.0004}
REMOTE_S = 0.0015
WIRE_S = 0.001
CORES = 4
PLACES = 64
_WARM_UP_S, _WATCHED_S = 4.0, 10.0


@dataclass(frozen=True, eq=False, slots=True)
class Deployment:
    """``applications`` chains, their instances on nodes, and the routing shares of rows (even by default)."""

    applications: int
    placement: Placement
    shares: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    def instances(self, name: str) -> int:
        return sum(self.placement.threads(name).values())


@dataclass(frozen=True, eq=False, slots=True)
class Performance:
    """Means over the applications; ``cpu`` the share of all cores that is busy, ``balance`` its spread over nodes,
    ``remote`` the share of hops between nodes."""

    latency_s: float
    per_s: float
    cpu: float
    balance: float
    remote: float
    seen: Observation


def cluster(nodes: int) -> tuple[Vm, ...]:
    """Nodes with one slot each; a busy instance uses the share of one core."""
    return tuple(Vm(f"node-{number}", 1) for number in range(1, nodes + 1))


def name_of(step: str, application: int) -> str:
    return f"{step}-{application}"


def topology(applications: int, remote: Mapping[str, float] | None = None) -> Topology:
    """The chains; ``remote`` is the share of an operator's rows that come from another node, by default all.

    >>> [round(1 / o.service_per_s, 4) for o in topology(1).operators]
    [0.0006, 0.0039, 0.0027, 0.0019]
    """
    operators: list[Operator] = []
    edges: list[Edge] = []
    for number in range(1, applications + 1):
        names = {step: name_of(step, number) for step in COMPUTE_S}
        for step, name in names.items():
            # every reader's rows come from outside; that cost is in its compute time
            far = 0.0 if step == "reader" else (1.0 if remote is None else remote[name])
            operators.append(Operator(name, 1 / (COMPUTE_S[step] + far * REMOTE_S), cpu=1 / CORES))
        edges += [Edge(a, b) for a, b in pairwise((f"source:{number}", *names.values(), "sink"))]
    return Topology("top-n", tuple(operators), tuple(edges))


def remote_shares(deployment: Deployment) -> dict[str, float]:
    """By operator, the share of rows whose sender runs on another node: 1 - sum over nodes of sent x received there."""
    found: dict[str, float] = {}
    for number in range(1, deployment.applications + 1):
        names = [name_of(step, number) for step in COMPUTE_S]
        for sender, receiver in pairwise(names):
            sent, received = _by_node(deployment, sender), _by_node(deployment, receiver)
            found[receiver] = 1 - math.fsum(share * received.get(node, 0.0) for node, share in sent.items())
    return found


def perform(deployment: Deployment, rate_per_s: float, seed: int = 0) -> Performance:
    """Simulate a deployment with ``rate_per_s`` into every application."""
    far = remote_shares(deployment)
    pipeline = topology(deployment.applications, far)
    threads = {name: deployment.instances(name) for name in pipeline.names}
    routing = {name: weighted(*deployment.shares[name]) if name in deployment.shares else shuffle() for name in threads}
    behaviour = Behaviour(
        routing=routing, capacity=dict.fromkeys(pipeline.names, PLACES), placement=deployment.placement
    )
    world = begin(pipeline, rate_per_s, threads, seed, behaviour=behaviour)
    advance(world, _WARM_UP_S)
    seen = advance(world, _WARM_UP_S + _WATCHED_S)
    inside_s = math.fsum(one.sojourn_s or 0.0 for one in seen.operators.values())
    loads = [min(cores / CORES, 1.0) for cores in _busy_by_node(deployment, seen).values()]
    mean = math.fsum(loads) / len(loads)
    return Performance(
        latency_s=(inside_s + math.fsum(far.values()) * WIRE_S) / deployment.applications,
        per_s=(seen.throughput_per_s or 0.0) / deployment.applications,
        cpu=mean,
        balance=math.sqrt(math.fsum((load - mean) ** 2 for load in loads) / len(loads)),
        remote=math.fsum(far.values()) / len(far),
        seen=seen,
    )


def _by_node(deployment: Deployment, name: str) -> dict[str, float]:
    """The share of an operator's rows that each node handles."""
    threads = deployment.placement.threads(name)
    hosts = [slot.rpartition("/")[0] for slot, count in threads.items() for _ in range(count)]
    shares = deployment.shares.get(name, (1 / len(hosts),) * len(hosts))
    found: dict[str, float] = {}
    for host, share in zip(hosts, shares, strict=True):
        found[host] = found.get(host, 0.0) + share
    return found


def _busy_by_node(deployment: Deployment, seen: Observation) -> dict[str, float]:
    """Busy cores of each node: its rows times their CPU, not counting blocked time."""
    busy = dict.fromkeys((vm.name for vm in deployment.placement.vms), 0.0)
    far = remote_shares(deployment)
    for name, one in seen.operators.items():
        cpu_s = COMPUTE_S[name.partition("-")[0]] + far.get(name, 0.0) * REMOTE_S
        for node, share in _by_node(deployment, name).items():
            busy[node] += share * (one.arrivals_per_s or 0.0) * cpu_s
    return busy
