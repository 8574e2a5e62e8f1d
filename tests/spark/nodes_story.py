"""Policies that decide nodes, on a cluster of 1 to 3 workers: the load rises and falls, and nodes come and go with it.

    python nodes_story.py CLUSTER FOLDER

A capacity file says what 1, 2 and 3 nodes sustain. Many rows come until all three nodes are warm, then few until one is
left. At the end it gives what happened and the checked answer as one line of JSON.
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
SHAPE = Shape(SLOTS, 1, 3, settle_s=600.0)  # a window that would keep nodes: the policy's decision does not wait for it
SIZES = {
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    "spark.executor.cores": str(SLOTS),
    "spark.cores.max": str(SHAPE.slots),
    "spark.executor.instances": "1",
    "spark.driver.extraJavaOptions": QUICK_JAVA,
    "spark.executor.extraJavaOptions": QUICK_JAVA,
}


def main(cluster: Cluster, folder: Path) -> None:
    status = cluster.status()
    if status is None:
        raise SystemExit("no cluster")
    nodes = LocalNodes(cluster, SLOTS, "512m", PATIENCE_S)
    ground = Ground(status.url, {**SIZES, **cluster.settings()}, SHAPE, nodes)
    spark = spark_session(ground.master, ground.settings)
    executors, follow, rate = Executors(spark), ground.fleet(spark), [MANY_PER_S]
    if follow is None:
        raise SystemExit("nothing to follow the plan")
    capacity = folder / "chain.mst.toml"
    points = tuple(CapacityPoint(m, mean, 10.0, (mean - 10.0, mean, mean + 10.0)) for m, mean in CURVE)
    capacity.write_text(capacity_text(CapacityFile(points, "chain", slots_per_node=SLOTS, startup_s=15.0)), "utf-8")
    control = Control(
        "uncertainty-3",  # without a forecast, which takes 100 steps: nodes then move with the load at once
        budget=SHAPE.slots,
        interval_s=1.0,
        startup_s=15.0,
        cycle_s=8.0,
        slots_per_node=ground.slots_per_node,
        capacity=str(capacity),
    )

    def both_are(count: int) -> bool:
        return executors.count() == count == len(nodes.running())

    with start(APP.build(), spark, folder / "run") as running:
        warm_up(APP, running)
        feeder = Feeder(APP, {"calls": running.feed("calls")}, lambda _: rate[0], DAY_S)
        layout = running.layout
        plan = PlanFile(layout.plan)
        with follow(running) as fleet, ExitStack() as stack:
            fleet.wait_until_complete(PATIENCE_S)
            stack.enter_context(Supervisor(layout, control))
            feeder.start()
            grown = wait_until(partial(both_are, 3), PATIENCE_S, 0.25)
            warm = wait_until(lambda: any('"startup_s"' in line for line in _lines(layout.fleet)), PATIENCE_S, 0.25)
            spread = wait_until(lambda: _tasks(plan) == 3 * SLOTS, PATIENCE_S, 0.25)
            rate[0] = FEW_PER_S
            shrunk = wait_until(partial(both_are, 1), PATIENCE_S, 0.25)
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
    main(Cluster(Path(sys.argv[1])), Path(sys.argv[2]))
