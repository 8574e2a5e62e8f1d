"""Nodes that a policy asks for, on a cluster of 1 to 3 workers: the load rises and falls, and they come and go with it.

    python nodes_story.py CLUSTER FOLDER POLICY

``uncertainty-3`` decides nodes, by a capacity file of what 1, 2 and 3 of them sustain; ``drs`` decides processors, and
its negotiator asks for the nodes that those need. Many rows come until all nodes that they need are warm, then few
until one is left. At the end it gives what happened and the checked answer as one line of JSON.
"""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from sluicegate.config.capacity_file import CapacityFile, CapacityPoint, capacity_text
from sluicegate.domain import Shape
from sluicegate.lab.apps import chain
from sluicegate.lab.running.feeding import Feeder
from sluicegate.lab.running.run_app import warm_up
from sluicegate.runlog.batch_log import Tail
from sluicegate.runlog.plan_file import PlanFile
from sluicegate.spark.act.executors import Executors
from sluicegate.spark.act.nodes import LocalNodes
from sluicegate.spark.cluster.java import QUICK_JAVA
from sluicegate.spark.cluster.standalone import Cluster
from sluicegate.spark.cluster.waiting import wait_until
from sluicegate.spark.controller import Control
from sluicegate.spark.ground import Ground
from sluicegate.spark.pipeline.runtime import start
from sluicegate.spark.session import spark_session
from sluicegate.spark.supervisor import Supervisor

PATIENCE_S, DAY_S = 300.0, 86_400.0
SLOTS = 2
# One query of 7 ms of waiting a row: a node of two slots does up to 286 rows a second.
APP = replace(chain.APP, build=partial(chain.build, fuse=True))
CURVE = ((1, 250.0), (2, 480.0), (3, 700.0))
FEW_PER_S, MANY_PER_S = 40.0, 500.0
NEEDED = {"uncertainty-3": 3 * SLOTS, "drs": SLOTS + 1}
"""Processors that many rows need at least, by policy: DRS may need more, as it finds out what a row takes."""
SETTLE_S = {"uncertainty-3": 600.0, "drs": 5.0}
"""A window that would keep nodes: what ``uncertainty-3`` decides does not wait for it."""
SIZES = {
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    "spark.executor.cores": str(SLOTS),
    "spark.cores.max": str(3 * SLOTS),
    "spark.executor.instances": "1",
    "spark.driver.extraJavaOptions": QUICK_JAVA,
    "spark.executor.extraJavaOptions": QUICK_JAVA,
}


def control_of(policy: str, folder: Path, ground: Ground) -> Control:
    """The control of a policy. DRS is promised so much time that it has the fewest processors that keep up."""
    if policy == "drs":
        options = ("t_max_s=120", "t_min_s=100", "t_ra_s=5", "t_m_s=1")
        return Control(policy, budget=3 * SLOTS, startup_s=15.0, options=options, slots_per_node=ground.slots_per_node)
    capacity = folder / "chain.mst.toml"
    points = tuple(CapacityPoint(m, mean, 10.0, (mean - 10.0, mean, mean + 10.0)) for m, mean in CURVE)
    capacity.write_text(capacity_text(CapacityFile(points, "chain", slots_per_node=SLOTS, startup_s=15.0)), "utf-8")
    return Control(
        policy,  # without a forecast, which takes 100 steps: nodes then move with the load at once
        budget=3 * SLOTS,
        interval_s=1.0,
        startup_s=15.0,
        cycle_s=8.0,
        slots_per_node=ground.slots_per_node,
        capacity=str(capacity),
    )


def main(cluster: Cluster, folder: Path, policy: str) -> None:
    status = cluster.status()
    if status is None:
        raise SystemExit("no cluster")
    nodes = LocalNodes(cluster, SLOTS, "512m", PATIENCE_S)
    shape, needed = Shape(SLOTS, 1, 3, SETTLE_S[policy]), NEEDED[policy]
    ground = Ground(status.url, {**SIZES, **cluster.settings()}, shape, nodes)
    spark = spark_session(ground.master, ground.settings)
    executors, follow, rate = Executors(spark), ground.fleet(spark), [MANY_PER_S]
    if follow is None:
        raise SystemExit("nothing to follow the plan")
    control = control_of(policy, folder, ground)

    def both_are(least: int, most: int) -> bool:
        return executors.count() == len(nodes.running()) and least <= executors.count() <= most

    with start(APP.build(), spark, folder / "run") as running:
        warm_up(APP, running)
        feeder = Feeder(APP, {"calls": running.feed("calls")}, lambda _: rate[0], DAY_S)
        layout = running.layout
        plan = PlanFile(layout.plan)
        with follow(running) as fleet, ExitStack() as stack:
            fleet.wait_until_complete(PATIENCE_S)
            stack.enter_context(Supervisor(layout, control))
            feeder.start()
            grown = wait_until(partial(both_are, -(-needed // SLOTS), 3), PATIENCE_S, 0.25)
            warm = wait_until(lambda: any('"startup_s"' in line for line in _lines(layout.fleet)), PATIENCE_S, 0.25)
            spread = wait_until(lambda: _tasks(plan) >= needed, PATIENCE_S, 0.25)
            rate[0] = FEW_PER_S
            shrunk = wait_until(partial(both_are, 1, 1), PATIENCE_S, 0.25)
            feeder.stop()
            running.drain(PATIENCE_S)
        answer = chain.check(feeder.fed, {"done": running.read(running.graph.nodes[-1].writes[0])})
        seen = {
            "grown": grown,
            "warm": warm,
            "spread": spread,
            "shrunk": shrunk,
            "answer": asdict(answer),
            "failed_tasks": executors.failed_tasks(),
            "decisions": [json.loads(line) for line in _lines(layout.decisions)],
            "fleet": [json.loads(line) for line in _lines(layout.fleet)],
        }
    spark.stop()
    sys.stdout.write(json.dumps(seen) + "\n")


def _tasks(plan: PlanFile) -> int:
    return sum(operator.processors for operator in plan.read().operators.values())


def _lines(path: Path) -> list[str]:
    return list(Tail(path).lines())


if __name__ == "__main__":
    main(Cluster(Path(sys.argv[1])), Path(sys.argv[2]), sys.argv[3])
