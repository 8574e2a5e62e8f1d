"""How fast the simulator is, against Ciw and SimPy on the same networks of M/M/k stations, in one run.

An event is an outside arrival or the end of a service, for all three: the same work whoever does it. Each simulator
runs the network for about the same wall time; the ratio is of events per second. Ours is compiled before the clock
starts, and is timed with building the network and its statistics; the others are timed without either. ``--large`` also
runs 10^8 events and reports the peak memory of the process.

    .venv/bin/python benchmarks/simulator_speed.py [--large] [--json]
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import statistics
import sys
import time
from collections.abc import Generator
from dataclasses import asdict, dataclass

import ciw
import simpy

import results
from sluicegate.domain import Edge, Operator, Topology
from sluicegate.lab.simulate import simulate

REQUIRED = {"ciw": 150.0, "simpy": 80.0}
ROUNDS = 3


@dataclass(frozen=True)
class Network:
    """Stations with ``servers`` of ``rates`` each, rows routed by ``routes``; all rows enter at the first."""

    name: str
    arrivals_per_s: float
    rates: tuple[float, ...]
    servers: tuple[int, ...]
    routes: tuple[tuple[float, ...], ...]

    def topology(self) -> Topology:
        names = [f"s{i}" for i in range(len(self.rates))]
        inner = [Edge(names[i], names[j], p) for i, row in enumerate(self.routes) for j, p in enumerate(row) if p > 0]
        operators = tuple(Operator(name, rate) for name, rate in zip(names, self.rates, strict=True))
        return Topology(self.name, operators, (Edge("source", names[0]), *inner))

    def allocation(self) -> dict[str, int]:
        return {f"s{i}": servers for i, servers in enumerate(self.servers)}


NETWORKS = (
    Network("one station, k = 4", 3.2, (1.0,), (4,), ((0.0,),)),
    Network("chain of three", 6.0, (4.0, 2.4, 5.0), (2, 4, 2), ((0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (0.0, 0.0, 0.0))),
    Network("loop of three", 6.0, (4.0, 2.4, 5.0), (3, 4, 2), ((0.0, 1.0, 0.0), (0.2, 0.0, 0.8), (0.0, 0.0, 0.0))),
    Network(
        "split, join and loop of five",
        10.0,
        (6.0, 3.0, 4.0, 8.0, 5.0),
        (3, 3, 2, 2, 3),
        (
            (0.0, 0.5, 0.4, 0.0, 0.1),
            (0.0, 0.0, 0.0, 1.0, 0.0),
            (0.0, 0.0, 0.0, 1.0, 0.0),
            (0.1, 0.0, 0.0, 0.0, 0.9),
            (0.0, 0.0, 0.0, 0.0, 0.0),
        ),
    ),
)


Measured = tuple[int, float]
"""Events, and the seconds they took."""


def by_sluicegate(network: Network, seconds: float) -> Measured:
    start = time.perf_counter()
    events = simulate(network.topology(), network.arrivals_per_s, network.allocation(), seconds, seed=1).events
    return events, time.perf_counter() - start


def by_ciw(network: Network, seconds: float) -> Measured:
    stations = len(network.rates)
    built = ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(network.arrivals_per_s), *[None] * (stations - 1)],
        service_distributions=[ciw.dists.Exponential(rate) for rate in network.rates],
        number_of_servers=list(network.servers),
        routing=[list(row) for row in network.routes],
    )
    ciw.seed(1)
    run = ciw.Simulation(built)
    start = time.perf_counter()
    run.simulate_until_max_time(seconds)
    took_s = time.perf_counter() - start
    records = run.get_all_records()
    return len(records) + len({record.id_number for record in records}), took_s


def by_simpy(network: Network, seconds: float) -> Measured:
    env, chance = simpy.Environment(), random.Random(1)
    stations = [simpy.Resource(env, servers) for servers in network.servers]
    events = 0

    def row() -> Generator[simpy.Event, None, None]:
        nonlocal events
        at = 0
        while at >= 0:
            with stations[at].request() as turn:
                yield turn
                yield env.timeout(chance.expovariate(network.rates[at]))
            events += 1
            at = target_of(chance.random(), network.routes[at])

    def source() -> Generator[simpy.Event, None, None]:
        nonlocal events
        while True:
            yield env.timeout(chance.expovariate(network.arrivals_per_s))
            events += 1
            env.process(row())

    env.process(source())
    start = time.perf_counter()
    env.run(until=seconds)
    return events, time.perf_counter() - start


def target_of(u: float, routes: tuple[float, ...]) -> int:
    """The next station, or -1 to leave."""
    for target, probability in enumerate(routes):
        u -= probability
        if u < 0:
            return target
    return -1


@dataclass(frozen=True)
class Row:
    network: str
    sluicegate_per_s: float
    ciw_per_s: float
    simpy_per_s: float
    over_ciw: float
    over_simpy: float


def compare(network: Network) -> Row:
    """The median of three rounds, in which the three take turns so that a busy machine slows them alike."""
    by_sluicegate(network, 10.0)
    rounds: list[list[float]] = []
    for _ in range(ROUNDS):
        runs = ((by_sluicegate, 2_000_000), (by_ciw, 9_000), (by_simpy, 27_000))
        measured = [run(network, inputs / network.arrivals_per_s) for run, inputs in runs]
        rounds.append([events / took_s for events, took_s in measured])
    ours, ciws, simpys = (statistics.median(column) for column in zip(*rounds, strict=True))
    over_ciw, over_simpy = (statistics.median(speeds[0] / speeds[i] for speeds in rounds) for i in (1, 2))
    return Row(network.name, ours, ciws, simpys, over_ciw, over_simpy)


@dataclass(frozen=True)
class Large:
    events: int
    wall_s: float
    events_per_s: float
    peak_bytes: int


def large(events: float = 1e8) -> Large:
    """A run of 10^8 events: its wall time and the peak memory of the process so far."""
    network = NETWORKS[2]
    per_second = by_sluicegate(network, 1_000.0)[0] / 1_000.0
    done, wall_s = by_sluicegate(network, 1.01 * events / per_second)
    peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return Large(done, wall_s, done / wall_s, peak_bytes)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", action="store_true", help="also run 10^8 events and report the peak memory")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    rows = [compare(network) for network in NETWORKS]
    for row in rows:
        results.record("simulator", **asdict(row))
    run = large() if options.large else None
    holds = all(r.over_ciw >= REQUIRED["ciw"] and r.over_simpy >= REQUIRED["simpy"] for r in rows)
    if options.json:
        print(json.dumps({"rows": [asdict(r) for r in rows], "large": asdict(run) if run else None, "holds": holds}))
        return 0 if holds else 1
    print(f"{'network':<32}{'sluicegate':>12}{'Ciw':>10}{'SimPy':>10}{'over Ciw':>10}{'over SimPy':>12}   (events/s)")
    for r in rows:
        speeds = f"{r.sluicegate_per_s / 1e6:>10.2f} M{r.ciw_per_s / 1e3:>8.1f} k{r.simpy_per_s / 1e3:>8.1f} k"
        print(f"{r.network:<32}{speeds}{r.over_ciw:>9.0f}x{r.over_simpy:>11.0f}x")
    if run:
        print(f"{run.events:.3g} events in {run.wall_s:.1f} s, {run.peak_bytes / 2**20:.0f} MiB at most")
    return 0 if holds else 1


if __name__ == "__main__":
    raise SystemExit(main())
