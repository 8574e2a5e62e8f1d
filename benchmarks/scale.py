"""How far one loop goes on paper: ticks of very large pipelines, what they write, and a budget that many share.

    python benchmarks/scale.py

Pipelines are chains beside each other, each with its own share of the load, under the micro-batch law: up to 10^4
operators at 10^9 rows a second, whose processors are those of 10^5 executors with four cores. Nothing runs; measured
are the processor time of a tick, the bytes of its lines in the logs and of the plan file, and the process's memory.
Then many applications with promises of their own share too few processors by the same greedy that queries of one
application use. What breaks first is the log of looks: it has a line for every operator at every look.
"""

from __future__ import annotations

import json
import resource
import time

import numpy as np

import results
from sluicegate.control import loop
from sluicegate.control.loop import Settings
from sluicegate.domain import (
    Batch,
    BatchCosts,
    Edge,
    Goal,
    Observation,
    Operator,
    OperatorObservation,
    Sojourn,
    Topology,
)
from sluicegate.forecast.catalogue import forecaster
from sluicegate.policy.sharing import Claim, shared
from sluicegate.policy.sluicegate import SluicegatePolicy
from sluicegate.runlog.plan_file import OperatorPlan, PlanInForce
from sluicegate.spark.documents import decision_document, tick_document

SIZES = ((100, 10, 1e7), (1_000, 100, 1e8), (10_000, 100, 1e9))
"""Operators, chains, rows a second in all."""
UTILISATION = 0.7
PER_PROCESSOR = 250_000.0
"""Rows a second that one processor serves."""
TICKS = 6


def pipeline(operators: int, chains: int) -> Topology:
    length, costs = operators // chains, BatchCosts(0.1, 0.02)
    steps, edges = [], []
    for chain in range(chains):
        before = f"source:{chain}"
        for step in range(length):
            name = f"c{chain}s{step}"
            steps.append(Operator(name, PER_PROCESSOR, batch=costs))
            edges.append(Edge(before, name))
            before = name
    return Topology("large", tuple(steps), tuple(edges))


def seen(
    topology: Topology, at_s: float, each_per_s: float, total_per_s: float, running: dict[str, int]
) -> Observation:
    rng = np.random.default_rng(int(at_s))
    noise = rng.uniform(0.95, 1.05, len(topology.operators)).tolist()
    operators = {
        o.name: OperatorObservation(
            each_per_s * n,
            o.service_per_s,
            1.0,
            1.0,
            UTILISATION,
            each_per_s * 0.1,
            sojourn_s=0.5,
            batches=(Batch(each_per_s * n, running[o.name], 1.0),),
        )
        for o, n in zip(topology.operators, noise, strict=True)
    }
    return Observation(at_s, total_per_s, running, operators, Sojourn(2.0, 1.9, 4.0, 5.0))


def large(operators: int, chains: int, total_per_s: float) -> None:
    topology, each = pipeline(operators, chains), total_per_s / chains
    settings = Settings(
        topology, SluicegatePolicy(), Goal(mean_s=600.0), forecaster=forecaster("recent-peak", step_s=60.0)
    )
    state = loop.start(settings)
    running = {o.name: int(each / o.service_per_s / UTILISATION) + 1 for o in topology.operators}
    for number in range(TICKS):
        observation = seen(topology, 5.0 * number, each, total_per_s, running)
        began = time.process_time()
        state, decision = loop.tick(state, observation, 5.0 * number)
        tick_s = time.process_time() - began
        running = dict(decision.running)
        if number < 2:
            continue  # the first ones compile and learn
        plan = PlanInForce(1, {name: OperatorPlan(k) for name, k in running.items()})
        line = json.dumps(tick_document(state, observation, decision))
        row = {
            "what": "one pipeline",
            "operators": operators,
            "processors": sum(running.values()),
            "rows_per_s": total_per_s,
            "tick_s": tick_s,
            "decision_kb": len(json.dumps(decision_document(decision, 1, state.situation))) / 1e3,
            "look_kb": len(line) / 1e3,
            "plan_kb": len(plan.to_json()) / 1e3,
            "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }
        results.record("scale", **row)
        print({key: round(value, 3) if isinstance(value, float) else value for key, value in row.items()}, flush=True)


def claims_of(applications: int, budget: int) -> dict[str, Claim]:
    """Each wants more than its share."""
    rng = np.random.default_rng(1)
    claims = {}
    for number in range(applications):
        offered, bound = float(rng.uniform(0.3, 1.5)) * budget / applications, float(rng.choice([2.0, 10.0, 60.0]))

        def mean_s(k: int, offered: float = offered) -> float:
            return 0.2 + offered / (k * (k - offered)) if k > offered else float("inf")

        claims[f"app{number}"] = Claim(int(2 * offered) + 2, bound, mean_s, offered)
    return claims


def many(applications: int, budget: int) -> None:
    """The next processor goes where it helps most against its own promise."""
    claims = claims_of(applications, budget)
    began = time.process_time()
    given = shared(claims, budget)
    row = {
        "what": f"{applications:,} applications, one budget",
        "operators": applications,
        "processors": sum(given.values()),
        "tick_s": time.process_time() - began,
        "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    results.record("scale", **row)
    print(row, flush=True)


def main() -> None:
    for size in SIZES:
        large(*size)
    for applications, budget in ((100, 10_000), (1_000, 100_000)):
        many(applications, budget)


if __name__ == "__main__":
    main()
