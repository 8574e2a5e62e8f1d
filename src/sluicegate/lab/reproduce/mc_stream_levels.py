"""Top_N on a cluster under Mc-Stream's four levels, simulated: reader -> count -> rank -> merge, one chain each app.

The paper gives neither service times nor the cost of a hop. Ours:

    compute    0.6, 2.4, 1.2 and 0.4 ms a row at reader, count, rank and merge
    remote     1.5 ms of CPU at the receiver for a row from another node (deserialisation), and 1 ms on the wire
    nodes      4 cores each, which all instances on the node share; the paper's three kinds are taken as equal
    queues     64 rows per instance; a full one blocks its sender

The remote cost is chosen so that the default scheduler fills 32 nodes with 14 applications at 1,000 rows/s, as in the
paper. It matters that all instances of a node share its cores: with each bound to one core, algorithm 3 fills one core
after the other and does worse than the default. Latency is a row's time from admission to leaving merge; waiting
outside a full cluster is not included. Throughput counts the rows that leave, in input rows.

Deployments:

    default       instances as the user set them, round robin over the nodes, rows in turn
    instance      instances by algorithm 1, rows by free places (algorithm 2); round robin
    scheduling    the user's instances, placed by algorithm 3
    resource      the user's instances, round robin, then hot instances moved by algorithm 4
    all           algorithm 1 and 2, placed by 3, then moved by 4; the user level is the topology itself

The user's numbers are ours: enough for 1,000 rows/s, the rate of most of the paper's experiments, with a margin of a
fifth; they do not change when the rate grows, as with the default scheduler. Algorithm 4 moves at most four instances
in each of two rounds while the latency exceeds twice the pure service time; a round that does not lower the latency is
undone. If the instances need more than the cluster has, their demands are scaled down to fit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from sluicegate.domain import Bundle, Edge, Observation, Operator, Placement, Topology, Vm
from sluicegate.errors import Infeasible
from sluicegate.lab.simulate import Behaviour, advance, begin, shuffle, weighted
from sluicegate.place.dsm import Dsm
from sluicegate.place.mc_stream import McStreamPlacer
from sluicegate.place.mc_stream_online import Measured, redeploy
from sluicegate.place.placer import DoesNotFit
from sluicegate.policy.demand import situation_at
from sluicegate.policy.papers.mc_stream import McStream
from sluicegate.policy.papers.redirection import QueueBounds, redirect

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


USERS_RATE_PER_S = 1000.0
_SPARE = 1.2
_ROUNDS = 2
_LATE = 2.0
_FILLED = 0.8
BOUNDS = QueueBounds(places=PLACES, least_mean=0.1, most_mean=PLACES / 2, most_deviation=PLACES / 10)


@dataclass(frozen=True, slots=True)
class Levels:
    """The active levels of Mc-Stream; without any it is the default scheduler."""

    name: str
    instance: bool = False
    scheduling: bool = False
    resource: bool = False


DEFAULT = Levels("default")
ALONE = (
    Levels("instance level", instance=True),
    Levels("scheduling level", scheduling=True),
    Levels("resource level", resource=True),
)
ALL = Levels("all levels", instance=True, scheduling=True, resource=True)


def run(
    levels: Levels, applications: int, rate_per_s: float, nodes: int, users_rate_per_s: float = USERS_RATE_PER_S
) -> Performance:
    """Deploy, then let the active levels improve the deployment round by round."""
    fleet = cluster(nodes)
    pipeline = topology(applications)
    wanted = (
        by_algorithm_1(pipeline, rate_per_s) if levels.instance else users_instances(applications, users_rate_per_s)
    )
    need = _bundles(pipeline, wanted, rate_per_s, fleet)
    place = McStreamPlacer().place if levels.scheduling else Dsm().place
    found = _found(place(pipeline, need, fleet))
    deployment = Deployment(applications, found)
    result = perform(deployment, rate_per_s)
    for _ in range(_ROUNDS if levels.instance or levels.resource else 0):
        better = improved(deployment, result, levels)
        if better is None:
            break
        tried = perform(better, rate_per_s)
        if tried.latency_s >= result.latency_s:
            break
        deployment, result = better, tried
    return result


def users_instances(applications: int, rate_per_s: float = USERS_RATE_PER_S) -> dict[str, int]:
    """
    >>> users_instances(1)
    {'reader-1': 1, 'count-1': 5, 'rank-1': 4, 'merge-1': 3}
    """
    chains = topology(applications)
    return {o.name: math.ceil(_SPARE * rate_per_s / o.service_per_s) for o in chains.operators}


def by_algorithm_1(pipeline: Topology, rate_per_s: float) -> dict[str, int]:
    """Mc-Stream's numbers, separately for each chain, as for independent applications."""
    chain = topology(1)
    numbers, _ = McStream().instances(situation_at(chain, rate_per_s))
    return {name: numbers[f"{name.partition('-')[0]}-1"] for name in pipeline.names}


def improved(deployment: Deployment, result: Performance, levels: Levels) -> Deployment | None:
    """The deployment improved by algorithms 2 and 4 from measurements; ``None`` if they change nothing."""
    shares = dict(deployment.shares)
    if levels.instance:
        asked = {name: redirect(one.instance_queues, BOUNDS).shares for name, one in result.seen.operators.items()}
        shares |= {name: share for name, share in asked.items() if share is not None}
    placement = _moved(deployment, result) if levels.resource else None
    if placement is None:
        return replace(deployment, shares=shares) if shares != dict(deployment.shares) else None
    # instances are numbered by slot, so measurements would be attributed to other instances after a move
    return replace(deployment, shares={}, placement=placement)


def _moved(deployment: Deployment, result: Performance) -> Placement | None:
    """The placement by algorithm 4 from measurements."""
    pipeline = topology(deployment.applications, remote_shares(deployment))
    loads: dict[tuple[str, str], float] = {}
    sized: list[Operator] = []
    for operator in pipeline.operators:
        arrivals = result.seen.of(operator.name).arrivals_per_s or 0.0
        each = arrivals / operator.service_per_s / CORES / deployment.instances(operator.name)
        sized.append(replace(operator, cpu=each))
        loads |= {(operator.name, s): each * n for s, n in deployment.placement.threads(operator.name).items()}
    edges = {(e.origin, e.target): result.seen.of(e.target).arrivals_per_s or 0.0 for e in pipeline.inner_edges}
    late = result.latency_s > _LATE * sum(COMPUTE_S.values())
    found = redeploy(pipeline.with_operators(tuple(sized)), deployment.placement, Measured(loads, edges), late)
    return found.placement if found.moves else None


def _bundles(pipeline: Topology, wanted: Mapping[str, int], rate_per_s: float, fleet: Sequence[Vm]) -> list[Bundle]:
    """One per instance, with its part of the operator's demand; scaled down if they do not fit on the fleet."""
    demand = {o.name: rate_per_s / o.service_per_s / CORES for o in pipeline.operators}
    room = _FILLED * sum(vm.slots for vm in fleet)
    scale = min(1.0, room / sum(demand.values()))
    return [
        Bundle(name, 1, min(1.0, scale * demand[name] / wanted[name]), 0.0)
        for name in pipeline.names
        for _ in range(wanted[name])
    ]


def _found(answer: Placement | DoesNotFit) -> Placement:
    if isinstance(answer, DoesNotFit):
        raise Infeasible(answer.why)
    return answer
