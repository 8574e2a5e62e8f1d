"""The applications of the Es-Stream paper, with the rates of the example files, and its cluster.

The paper gives neither service rates nor beta: both are ours, fitted to its instance counts and highest rates.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from sluicegate.domain import Edge, Limits, Operator, Topology, Vm
from sluicegate.lab.simulate.simulation import simulate
from sluicegate.policy.demand import situation_at, stations_of
from sluicegate.policy.papers.drs import assign_processors
from sluicegate.policy.papers.es_stream import EsStream


def _chain(name: str, *operators: Operator) -> Topology:
    names = ["source", *(operator.name for operator in operators)]
    return Topology(name, operators, tuple(Edge(origin, target) for origin, target in pairwise(names)))


COMMODITY_COUNT = _chain(
    "commodity_count",
    Operator("reader", 1900.0),
    Operator("count", 384.0, stateful=True),
    Operator("report", 5000.0),
)
TOP_N = _chain(
    "top_n",
    Operator("reader", 2250.0),
    Operator("count", 436.0, stateful=True),
    Operator("rank", 1040.0, stateful=True),
    Operator("merge", 7000.0, stateful=True),
)


@dataclass(frozen=True, slots=True)
class PaperApp:
    """One application, with the paper's instance counts at the three rates and the highest rate it held."""

    name: str
    topology: Topology
    instances: tuple[int, ...]
    highest_per_s: float


APPS = (
    PaperApp("COMMCount", COMMODITY_COUNT, (14, 24, 19), 15_000.0),
    PaperApp("Top_N", TOP_N, (18, 27, 23), 13_500.0),
)

NODES, PER_NODE = 13, 4
"""The paper's cluster: 13 nodes, 2 workers per node, 2 instances per worker."""
FLEET = tuple(Vm(f"n{i}", PER_NODE) for i in range(1, NODES + 1))
ROUND_ROBIN = tuple(Vm(vm.name, 1) for vm in FLEET)
"""The same nodes for a round-robin mapper: instances are placed node by node, as by Storm's EvenScheduler."""
FITTED = "Service rates and beta are fitted to the paper's figures: they show that the model can, not that it must."


def instances(topology: Topology, rate_per_s: float, limits: Limits | None = None) -> dict[str, int]:
    """The instances that Es-Stream plans for a rate.

    >>> instances(COMMODITY_COUNT, 1800.0)
    {'reader': 3, 'count': 9, 'report': 2}
    """
    return dict(EsStream().propose(None, situation_at(topology, rate_per_s, limits=limits))[1].processors)


def drs_split(topology: Topology, rate_per_s: float, total: int) -> dict[str, int]:
    """``total`` instances as allocated by algorithm 1 of DRS: the least time by M/M/k.

    >>> drs_split(COMMODITY_COUNT, 1800.0, 14)
    {'reader': 3, 'count': 9, 'report': 2}
    """
    k = assign_processors(stations_of(situation_at(topology, rate_per_s)).markovian(), total)
    return dict(zip(topology.names, map(int, k), strict=True))


def shown(counts: Mapping[str, int] | Iterable[int]) -> str:
    """
    >>> shown({"reader": 3, "count": 9})
    '(3,9)'
    """
    values = counts.values() if isinstance(counts, Mapping) else counts
    return f"({','.join(map(str, values))})"


def mean_s(topology: Topology, rate_per_s: float, counts: Mapping[str, int], seconds: float) -> float:
    """The simulated mean; infinite if the instances do not keep up."""
    found = simulate(topology, rate_per_s, counts, seconds, seed=1).mean_s
    return math.inf if found is None else found
