"""How fast DRS's greedy is: against algorithm 1 written literally, and as networks and budgets grow.

The literal version follows the paper line by line: in each round it recomputes E[T_i] of every operator for k and k + 1
with the closed Erlang formula (a sum of a^l/l!), in exact integers and floats as Python has them. Ours carries Erlang B
along and keeps the gains in a heap. Both run in this process, and give the same allocation.

What bounds ours: one step of the Erlang recursion and one heap operation a processor; memory is the imports' own.
"""

from __future__ import annotations

import math
import resource
import time
from collections.abc import Callable
from functools import partial

import numpy as np

import results
from sluicegate.domain import Limits
from sluicegate.model.stations import Laws, Stations
from sluicegate.policy.papers.drs import assign_processors


def network(operators: int, processors: int, load: float, seed: int = 1) -> Stations:
    """Random rates that keep ``load`` of ``processors`` busy."""
    rng = np.random.default_rng(seed)
    service, arrivals = rng.uniform(0.5, 2.0, operators), rng.uniform(0.1, 1.0, operators)
    arrivals *= load * processors / np.sum(arrivals / service)
    ones, zeros = np.ones(operators), np.zeros(operators)
    laws = Laws(arrivals, arrivals, service, ones, ones, zeros, zeros, zeros)
    return Stations(tuple(f"o{i}" for i in range(operators)), float(arrivals.max()), laws)


def literal_sojourn_s(arrivals: float, service: float, k: int) -> float:
    """Equations 1 to 3 as printed."""
    if arrivals >= k * service:
        return math.inf
    a, rho = arrivals / service, arrivals / (k * service)
    total = sum(a**n / math.factorial(n) for n in range(k))
    last = a**k / (math.factorial(k) * (1 - rho))
    return last / (total + last) / (k * service - arrivals) + 1 / service


def literal_algorithm_1(stations: Stations, budget: int) -> list[int]:
    """AssignProcessors, line by line, stopping at the budget."""
    arrivals, service = stations.laws.arrivals_per_s.tolist(), stations.laws.service_per_s.tolist()
    k = [math.floor(a / s) + 1 for a, s in zip(arrivals, service, strict=True)]
    while sum(k) < budget:
        gains = [
            a * (literal_sojourn_s(a, s, n) - literal_sojourn_s(a, s, n + 1))
            for a, s, n in zip(arrivals, service, k, strict=True)
        ]
        k[gains.index(max(gains))] += 1
    return k


def seconds(call: Callable[[], object], times: int) -> float:
    """Processor time of the shortest of some calls: other work on the machine would blur the time on the wall."""
    best = math.inf
    for _ in range(times):
        begin = time.process_time()
        call()
        best = min(best, time.process_time() - begin)
    return best


def main() -> None:
    assign_processors(network(3, 24, 0.5), 24)
    print("K     literal ms   ours ms   ratio   same answer")
    for budget in (12, 24, 48, 96, 192):
        stations = network(3, budget, 0.5)
        same = literal_algorithm_1(stations, budget) == assign_processors(stations, budget, Limits()).tolist()
        literal = seconds(partial(literal_algorithm_1, stations, budget), 3)
        ours = seconds(partial(assign_processors, stations, budget), 20)
        results.record("planning", operators=3, processors=budget, ours_s=ours, ratio=literal / ours, same=same)
        print(f"{budget:<5} {literal * 1e3:10.3f} {ours * 1e3:9.4f} {literal / ours:7.0f}   {same}")
    print("\noperators  processors  seconds  ns per (N+K) log2 N   peak MB")
    for operators, budget in ((100, 10_000), (1_000, 100_000), (10_000, 1_000_000)):
        stations = network(operators, budget, 0.8)
        taken = seconds(partial(assign_processors, stations, budget), 3)
        unit = taken / ((operators + budget) * math.log2(operators)) * 1e9
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        results.record("planning", operators=operators, processors=budget, ours_s=taken, unit_ns=unit, peak_mb=peak)
        print(f"{operators:9,}  {budget:10,}  {taken:7.4f}  {unit:19.2f}  {peak:8.0f}")


if __name__ == "__main__":
    main()
