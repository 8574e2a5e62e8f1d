"""Builds the arrays of an empty network at time 0 from a scenario."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from sluicegate.domain import Edge, Operator, Topology, is_sink
from sluicegate.lab.simulate import records
from sluicegate.lab.simulate.agenda import empty_agenda
from sluicegate.lab.simulate.arrivals import Arrivals
from sluicegate.lab.simulate.distributions import Distribution, constant
from sluicegate.lab.simulate.kernel import start_sources
from sluicegate.lab.simulate.placing import place
from sluicegate.lab.simulate.records import Net, Records
from sluicegate.lab.simulate.rng import seeded
from sluicegate.lab.simulate.scenario import Discipline, Scenario
from sluicegate.lab.simulate.statistics import BINS

_FIRST_ROWS = 1024
_DISCIPLINES = {
    Discipline.SHARED: records.SHARED,
    Discipline.SHUFFLE: records.CYCLIC,
    Discipline.WEIGHTED: records.WEIGHTED,
    Discipline.SPREAD: records.SPREAD,
}


def build(scenario: Scenario, seed: int, log: int = 0) -> Net:
    """The network of a scenario; ``log`` is how many batches it can record for an observer."""
    numbers: list[float] = []
    nodes, edges = _wired(scenario.topology)
    for index, operator in enumerate(scenario.topology.operators):
        _fit_operator(nodes[index : index + 1], scenario, operator)
    for index, source in enumerate(scenario.topology.sources, start=len(scenario.topology.operators)):
        _fit_source(nodes[index : index + 1], scenario.arrivals[source], numbers)
    slots = _slots(scenario, nodes)
    net = Net(
        rows=records.empty_rows(_FIRST_ROWS),
        inputs=records.empty_inputs(_FIRST_ROWS),
        nodes=nodes,
        slots=slots,
        agenda=empty_agenda(len(slots)),
        edges=edges,
        groups=np.zeros(1, dtype=records.GROUP),
        hosts=np.zeros(1, dtype=records.HOST),
        numbers=np.array([*numbers, 0.0]),
        streams=seeded(seed, len(nodes)),
        totals=_totals(scenario, edges, nodes),
        histogram=np.zeros(BINS, dtype=np.int64),
        log=np.zeros(log, dtype=records.BATCH),
        stack=np.zeros(len(slots) + 1, dtype=np.uint32),
    )
    if scenario.behaviour.placement is not None:
        net = place(net, scenario, scenario.behaviour.placement)
    start_sources(net)
    return net


def _wired(topology: Topology) -> tuple[Records, Records]:
    """Nodes with their outgoing edges. A sink is a target beyond the operators."""
    names = [*topology.names, *topology.sources]
    rank = {name: i for i, name in enumerate(topology.order)}
    leaving: dict[str, list[Edge]] = {name: [] for name in names}
    for edge in topology.edges:
        if edge.selectivity > 0:
            leaving[edge.origin].append(edge)
    nodes = np.zeros(len(names), dtype=records.NODE)
    found: list[tuple[int, int, float, int, float]] = []
    for index, name in enumerate(names):
        out = leaving[name]
        nodes["first_edge"][index] = len(found)
        nodes["routing"][index] = _routing(out)
        shares = np.cumsum([edge.selectivity for edge in out])
        for edge, share in zip(out, shares, strict=True):
            if nodes["routing"][index] == records.COPIES and is_sink(edge.target):
                continue
            target = topology.index.get(edge.target, len(topology.operators))
            back = int(name in rank and rank.get(edge.target, math.inf) <= rank[name])
            whole = math.floor(edge.selectivity)
            found.append((target, back, float(share), whole, edge.selectivity - whole))
        nodes["end_edge"][index] = len(found)
    return nodes, np.array([*found, (0, 0, 0.0, 0, 0.0)], dtype=records.EDGE)


def _routing(out: Sequence[Edge]) -> int:
    total = sum(edge.selectivity for edge in out)
    if all(is_sink(edge.target) for edge in out):
        return records.NOWHERE
    if total > 1 + 1e-9:
        return records.COPIES
    return records.SURE if len(out) == 1 and total >= 1 - 1e-12 else records.ONE_OF


def _fit_operator(node: Records, scenario: Scenario, operator: Operator) -> None:
    name = operator.name
    servers, costs = scenario.allocation[name], scenario.batches.get(name)
    node["servers"] = servers
    node["capacity"] = scenario.behaviour.capacity.get(name, records.UNBOUNDED)
    node["mean"] = 1 / operator.service_per_s
    node["discipline"] = _DISCIPLINES[scenario.routing(name).discipline]
    _fit_times(node, scenario.service(operator))
    if costs is not None:
        node["discipline"] = records.BATCHED
        node["overhead_s"] = costs.overhead_s + costs.per_task_s * servers
        node["per_row_s"] = 1 / (servers * operator.service_per_s)
        node["commit_s"] = costs.commit_s
        node["pace_s"] = scenario.behaviour.pace_s.get(name, 0.0)
        behaviour = scenario.behaviour
        node["steady_work"] = behaviour.steady_work
        _fit_times(node, behaviour.batch_noise.get(name, constant()))


def _fit_times(node: Records, law: Distribution) -> None:
    """Store a distribution's parameters in the node."""
    node["kind"] = int(law.kind)
    node["a"], node["b"], node["c"] = law.a, law.b, law.c


def _fit_source(node: Records, arrivals: Arrivals, numbers: list[float]) -> None:
    _fit_times(node, arrivals.gaps)
    node["rates"], node["steps"], node["step_s"] = len(numbers), len(arrivals.rates_per_s), arrivals.step_s
    numbers.extend(arrivals.rates_per_s)


def _slots(scenario: Scenario, nodes: Records) -> Records:
    """The slots: 0 means none, then the sources, then each operator's servers (one slot if it runs in batches)."""
    operators = len(scenario.topology.operators)
    owners = [0, *range(operators, len(nodes))]
    for index in range(operators):
        nodes["first"][index] = len(owners)
        batched = nodes["discipline"][index] == records.BATCHED
        owners.extend([index] * (1 if batched else int(nodes["servers"][index])))
    slots = np.zeros(len(owners), dtype=records.SLOT)
    slots["node"] = owners
    slots["open"] = 1
    for index, operator in enumerate(scenario.topology.operators):
        if nodes["discipline"][index] != records.BATCHED:
            first, servers = int(nodes["first"][index]), int(nodes["servers"][index])
            fit_queues(slots, range(first, first + servers), scenario, operator.name)
    return slots


def fit_queues(slots: Records, servers: range, scenario: Scenario, name: str) -> None:
    """Assign each server its queue and its cumulative share of rows, and mark all as idle."""
    routing = scenario.routing(name)
    slots["share"][servers] = np.cumsum(routing.shares(len(servers)))
    for server in reversed(servers):
        queue = servers.start if routing.discipline is Discipline.SHARED else server
        slots["queue"][server] = queue
        slots["next_idle"][server] = slots["idle"][queue]
        slots["idle"][queue] = server


def _totals(scenario: Scenario, edges: Records, nodes: Records) -> Records:
    totals = np.zeros(1, dtype=records.TOTALS)
    totals["operators"] = len(scenario.topology.operators)
    totals["bounded"] = bool(scenario.behaviour.capacity)
    totals["free_row"] = totals["free_input"] = 1
    totals["spare"] = _FIRST_ROWS - 1
    totals["most_copies"] = 2 + max(_most_copies(nodes, edges))
    return totals


def _most_copies(nodes: Records, edges: Records) -> Iterable[int]:
    for node in nodes:
        out = edges[node["first_edge"] : node["end_edge"]]
        yield int(out["copies"].sum()) + len(out)
