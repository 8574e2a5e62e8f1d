"""The same networks in two simulators that share nothing with ours: Ciw and SimPy."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Generator
from dataclasses import dataclass

import ciw
import numpy as np
import pytest
import simpy

from sluicegate.domain import Edge, Operator, Topology
from sluicegate.lab.simulate import Behaviour, simulate
from sluicegate.lab.simulate.distributions import Distribution, constant, exponential, gamma, uniform

RATE, RATES, SERVERS = 4.0, (4.0, 2.4, 5.0), (3, 4, 2)
ROUTES = ((0.0, 1.0, 0.0), (0.2, 0.0, 0.8), (0.0, 0.25, 0.0))


@dataclass(frozen=True)
class Law:
    """One service distribution of mean 1, told to each of the three."""

    ours: Distribution
    ciw: Callable[[float], ciw.dists.Distribution]
    plain: Callable[[random.Random], float]


LAWS = {
    "exponential": Law(exponential(), lambda mean: ciw.dists.Exponential(1 / mean), lambda r: r.expovariate(1.0)),
    "gamma": Law(gamma(0.5), lambda mean: ciw.dists.Gamma(2.0, mean / 2), lambda r: r.gammavariate(2.0, 0.5)),
    "uniform": Law(
        uniform(0.2, 1.8), lambda mean: ciw.dists.Uniform(0.2 * mean, 1.8 * mean), lambda r: r.uniform(0.2, 1.8)
    ),
    "constant": Law(constant(), ciw.dists.Deterministic, lambda r: 1.0),
}


def loop() -> Topology:
    names = ("a", "b", "c")
    inner = tuple(Edge(names[i], names[j], ROUTES[i][j]) for i in range(3) for j in range(3) if ROUTES[i][j] > 0)
    return Topology(
        "loop", tuple(Operator(n, mu) for n, mu in zip(names, RATES, strict=True)), (Edge("source", "a"), *inner)
    )


def ours(law: Law) -> tuple[float, float]:
    behaviour = Behaviour(service=dict.fromkeys("abc", law.ours))
    result = simulate(loop(), RATE, dict(zip("abc", SERVERS, strict=True)), 200_000, seed=1, behaviour=behaviour)
    assert result.mean_s is not None
    assert result.ci95_s is not None
    return result.mean_s, result.ci95_s


def interval(times: list[float]) -> tuple[float, float]:
    """Mean and half width by ten batch means, the first tenth dropped."""
    kept = np.array(times[len(times) // 10 :])
    means = np.array([part.mean() for part in np.array_split(kept, 10)])
    return float(kept.mean()), 2.262 * float(means.std(ddof=1)) / math.sqrt(10)


def by_ciw(law: Law, seconds: float) -> tuple[float, float]:
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(RATE), None, None],
        service_distributions=[law.ciw(1 / mu) for mu in RATES],
        number_of_servers=list(SERVERS),
        routing=[list(row) for row in ROUTES],
    )
    ciw.seed(7)
    simulation = ciw.Simulation(network)
    simulation.simulate_until_max_time(seconds)
    first: dict[int, float] = {}
    last: dict[int, float] = {}
    for record in simulation.get_all_records():
        person = record.id_number
        first[person] = min(record.arrival_date, first.get(person, math.inf))
        last[person] = max(record.exit_date, last.get(person, 0.0))
    gone = {individual.id_number for individual in simulation.nodes[-1].all_individuals}
    return interval([last[person] - first[person] for person in sorted(gone)])


def by_simpy(law: Law, seconds: float) -> tuple[float, float]:
    env, chance = simpy.Environment(), random.Random(7)
    stations = [simpy.Resource(env, servers) for servers in SERVERS]
    times: list[float] = []

    def row() -> Generator[simpy.Event, None, None]:
        born, at = env.now, 0
        while at < 3:
            with stations[at].request() as turn:
                yield turn
                yield env.timeout(law.plain(chance) / RATES[at])
            u, row_of = chance.random(), ROUTES[at]
            at = next((j for j in range(3) if u < sum(row_of[: j + 1])), 3)
        times.append(env.now - born)

    def source() -> Generator[simpy.Event, None, None]:
        while True:
            yield env.timeout(chance.expovariate(RATE))
            env.process(row())

    env.process(source())
    env.run(until=seconds)
    return interval(times)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["exponential", "gamma"])
def test_a_network_with_loops_agrees_with_ciw(name: str) -> None:
    (mean, ci), (theirs, their_ci) = ours(LAWS[name]), by_ciw(LAWS[name], 2_500)
    assert abs(mean - theirs) <= ci + their_ci
    assert their_ci < 0.1 * mean


@pytest.mark.slow
@pytest.mark.parametrize("name", LAWS)
def test_a_network_with_loops_agrees_with_simpy(name: str) -> None:
    (mean, ci), (theirs, their_ci) = ours(LAWS[name]), by_simpy(LAWS[name], 4_000)
    assert abs(mean - theirs) <= ci + their_ci
    assert their_ci < 0.1 * mean
