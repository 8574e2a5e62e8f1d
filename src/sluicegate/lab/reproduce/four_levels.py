"""Deployments of Top_N: Storm's default scheduler, Mc-Stream, and Mc-Stream with one of its levels alone.

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
from dataclasses import dataclass, replace

from sluicegate.domain import Bundle, Operator, Placement, Topology, Vm
from sluicegate.errors import Infeasible
from sluicegate.lab.reproduce import top_n
from sluicegate.lab.reproduce.top_n import COMPUTE_S, CORES, PLACES, Deployment, Performance, cluster, perform
from sluicegate.place.dsm import Dsm
from sluicegate.place.mc_stream import McStreamPlacer
from sluicegate.place.mc_stream_online import Measured, redeploy
from sluicegate.place.placer import DoesNotFit
from sluicegate.policy.demand import situation_at
from sluicegate.policy.papers.mc_stream import McStream
from sluicegate.policy.papers.redirection import QueueBounds, redirect

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
    pipeline = top_n.topology(applications)
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
    chains = top_n.topology(applications)
    return {o.name: math.ceil(_SPARE * rate_per_s / o.service_per_s) for o in chains.operators}


def by_algorithm_1(pipeline: Topology, rate_per_s: float) -> dict[str, int]:
    """Mc-Stream's numbers, separately for each chain, as for independent applications."""
    chain = top_n.topology(1)
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
    pipeline = top_n.topology(deployment.applications, top_n.remote_shares(deployment))
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
