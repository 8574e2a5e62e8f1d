"""Computes the load offered to each operator's busiest queue by the traffic equations; at 1 or more it is unstable."""

from __future__ import annotations

from sluicegate.domain import Operator
from sluicegate.lab.simulate.placing import hosts_of, thread_per_s
from sluicegate.lab.simulate.scenario import Discipline, Scenario
from sluicegate.model.traffic import solve


def offered_loads(scenario: Scenario, seconds: float) -> dict[str, float]:
    """Offered rate over capacity by operator, for the mean arrival rate over the first ``seconds``.

    A shared queue is served by all its processors together; an instance's own queue by one. Back-pressure can make
    a network unstable below these loads; only the simulation shows that.

    >>> from sluicegate.domain import Edge, Operator, Topology
    >>> from sluicegate.lab.simulate.scenario import Behaviour, scenario, weighted
    >>> one = Topology("t", (Operator("a", 10.0),), (Edge("source", "a"),))
    >>> offered_loads(scenario(one, 12.0, {"a": 2}), 60.0)
    {'a': 0.6}
    >>> offered_loads(scenario(one, 12.0, {"a": 2}, behaviour=Behaviour(routing={"a": weighted(3, 1)})), 60.0)
    {'a': 0.9}
    """
    rates = {source: arrivals.mean_per_s(seconds) for source, arrivals in scenario.arrivals.items()}
    arrivals = solve(scenario.topology, rates)
    return {
        operator.name: _offered(scenario, operator, float(rate))
        for operator, rate in zip(scenario.topology.operators, arrivals, strict=True)
    }


def _offered(scenario: Scenario, operator: Operator, arrivals_per_s: float) -> float:
    speeds = _thread_rates(scenario, operator)
    routing = scenario.routing(operator.name)
    if operator.name in scenario.batches:
        return arrivals_per_s / (len(speeds) * min(speeds))
    if routing.discipline is Discipline.SHARED:
        return arrivals_per_s / sum(speeds)
    shares = routing.shares(len(speeds))
    return max(arrivals_per_s * share / speed for share, speed in zip(shares, speeds, strict=True))


def _thread_rates(scenario: Scenario, operator: Operator) -> list[float]:
    placement = scenario.behaviour.placement
    if placement is None:
        return [operator.service_per_s] * scenario.allocation[operator.name]
    return [thread_per_s(scenario, placement, operator.name, slot) for slot in hosts_of(placement, operator.name)]
