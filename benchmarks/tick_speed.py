"""How long one `loop.tick` takes, by number of operators and law, against a plain greedy plan of the same network.

Every tick measures, smooths, learns, plans and governs, every twelfth also forecasts; each operator reports fresh
figures, so nothing is left as it was. Times are processor time, as other work on the machine would blur them. What
bounds it: building the frozen values a tick hands on, some ten microseconds an operator.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import replace
from itertools import pairwise

import numpy as np

import results
from sluicegate.control import loop
from sluicegate.control.loop import Settings
from sluicegate.domain import (
    Batch,
    BatchCosts,
    Edge,
    Goal,
    Limits,
    Observation,
    Operator,
    OperatorObservation,
    Sojourn,
    Topology,
)
from sluicegate.forecast.catalogue import forecaster
from sluicegate.policy.demand import situation_at, stations_of
from sluicegate.policy.greedy import greedy_path
from sluicegate.policy.sluicegate import SluicegatePolicy


def chain(operators: int, batches: bool) -> Topology:
    rng = np.random.default_rng(1)
    costs = BatchCosts(0.1, 0.02) if batches else None
    steps = tuple(Operator(f"o{i}", float(rng.uniform(50, 500)), batch=costs) for i in range(operators))
    names = ["source", *(f"o{i}" for i in range(operators))]
    return Topology("chain", steps, tuple(Edge(a, b) for a, b in pairwise(names)))


def observation(topology: Topology, at_s: float, running: dict[str, int], rng: np.random.Generator) -> Observation:
    noise = rng.uniform(0.9, 1.1, len(topology.operators))
    operators = {
        o.name: OperatorObservation(
            1000.0 * n,
            o.service_per_s * n,
            1.0,
            n,
            0.7,
            10.0 * n,
            sojourn_s=0.1 * n,
            batches=(Batch(500.0 * n, running[o.name], 0.4 * n),) if o.batch else (),
        )
        for o, n in zip(topology.operators, noise.tolist(), strict=True)
    }
    return Observation(at_s, 1000.0 * float(noise[0]), running, operators, Sojourn(2.0, 1.9, 4.0, 5.0))


def ticks_ms(topology: Topology, goal: Goal, count: int = 120) -> list[float]:
    rng = np.random.default_rng(2)
    state = loop.start(Settings(topology, SluicegatePolicy(), goal, forecaster=forecaster("recent-peak", step_s=60.0)))
    running = {o.name: int(1500 / o.service_per_s) + 1 for o in topology.operators}
    taken = []
    for i in range(count):
        seen = observation(topology, 5.0 * i, running, rng)
        begin = time.process_time()
        state, decision = loop.tick(state, seen, 5.0 * i)
        taken.append((time.process_time() - begin) * 1e3)
        running = dict(decision.running)
    return taken[count // 3 :]


def plan_ms(topology: Topology) -> float:
    stations = stations_of(situation_at(topology, 1000.0))
    stations = replace(stations, outside_per_s=1000.0)
    begin = time.process_time()
    for _ in range(20):
        greedy_path(stations, Limits(), 10**7, until_mean_s=60.0)
    return (time.process_time() - begin) * 50.0


def main() -> None:
    print("operators  law          goal   median ms   p95 ms   plain plan ms   ratio")
    for operators in (10, 100, 1000):
        for batches in (False, True):
            for what, goal in (("mean", Goal(mean_s=60.0)), ("p95", Goal(p95_s=90.0))):
                topology = chain(operators, batches)
                taken, plain = ticks_ms(topology, goal), plan_ms(topology)
                median, high = statistics.median(taken), float(np.quantile(taken, 0.95))
                law = "micro-batch" if batches else "queue"
                results.record(
                    "tick",
                    operators=operators,
                    law=law,
                    goal=what,
                    median_ms=median,
                    p95_ms=high,
                    ratio=median / plain,
                )
                times = f"{median:9.3f}  {high:7.3f}  {plain:14.4f}  {median / plain:6.1f}"
                print(f"{operators:9}  {law:11}  {what:5}  {times}")


if __name__ == "__main__":
    main()
