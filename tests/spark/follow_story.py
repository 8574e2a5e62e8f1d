"""A pipeline under the live loop on a cluster: executors and workers follow its plan up and down.

    python follow_story.py CLUSTER FOLDER [POLICY [OPTION...]]

Many rows come until the plan has brought all executors and workers there may be, then few until one of each is left. At
the end it gives what happened and the checked answer as one line of JSON.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from sluicegate.domain import Shape
from sluicegate.lab.apps import chain
from sluicegate.lab.running.feeding import Feeder
from sluicegate.lab.running.run_app import warm_up
from sluicegate.runlog.batch_log import Tail
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
# One query of 7 ms of waiting a row: one processor does 143 rows a second.
APP = replace(chain.APP, build=partial(chain.build, fuse=True))
FEW_PER_S, MANY_PER_S = 30.0, 300.0
FEWEST_PER_S = 8.0
"""For policies that keep more room than sluicegate's own."""
SHAPE = Shape(slots_per_executor=1, least=1, most=3, settle_s=2.0)
CONTROL = Control(slo=("mean=3s",), budget=SHAPE.slots, interval_s=1.0, cooldown_s=2.0, settle_down_s=4.0)
SIZES = {
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.cores.max": str(SHAPE.slots),
    "spark.driver.extraJavaOptions": QUICK_JAVA,
    "spark.executor.extraJavaOptions": QUICK_JAVA,
}


def main(cluster: Cluster, folder: Path, policy: str = "sluicegate", *options: str) -> None:
    status = cluster.status()
    if status is None:
        raise SystemExit("no cluster")
    ground = Ground(status.url, {**SIZES, **cluster.settings()}, SHAPE, LocalNodes(cluster, 1, "512m", PATIENCE_S))
    spark = spark_session(ground.master, ground.settings)
    executors, fleet, rate = Executors(spark), ground.fleet(spark), [MANY_PER_S]
    if ground.nodes is None or fleet is None:
        raise SystemExit("nothing to follow the plan")
    nodes = ground.nodes

    def both_are(count: int) -> bool:
        return executors.count() == count == len(nodes.running())

    with start(APP.build(), spark, folder) as running:
        warm_up(APP, running)
        feeder = Feeder(APP, {"calls": running.feed("calls")}, lambda _: rate[0], DAY_S)
        control = replace(CONTROL, policy=policy, options=options)
        with Supervisor(running.layout, control), fleet(running):
            feeder.start()
            grown = wait_until(partial(both_are, SHAPE.most), PATIENCE_S, 0.25)
            rate[0] = FEW_PER_S if policy == "sluicegate" else FEWEST_PER_S
            shrunk = wait_until(partial(both_are, SHAPE.least), PATIENCE_S, 0.25)
            feeder.stop()
            running.drain(PATIENCE_S)
        answer = chain.check(feeder.fed, {"done": running.read(running.graph.nodes[-1].writes[0])})
        seen = {
            "grown": grown,
            "shrunk": shrunk,
            "answer": asdict(answer),
            "failed_tasks": executors.failed_tasks(),
            "restarts": [text for text in running.restarts if "connect" not in text],
            "decisions": [json.loads(line)["running"] for line in Tail(running.layout.decisions).lines()],
            "changes": [
                f"{change['what']} {change['have']} -> {change['want']}: {change['reason']}"
                for line in Tail(running.layout.decisions).lines()
                for change in json.loads(line)["changes"]
            ],
            "numbered": [json.loads(line)["decision"] for line in Tail(running.layout.fleet).lines()],
            "nodes_seen": max(
                (len(json.loads(line)["nodes"]) for line in Tail(running.layout.ticks).lines()), default=0
            ),
            "fleet": [json.loads(line)["what"] for line in Tail(running.layout.fleet).lines()],
        }
    spark.stop()
    sys.stdout.write(json.dumps(seen) + "\n")


if __name__ == "__main__":
    main(Cluster(Path(sys.argv[1]), PATIENCE_S), Path(sys.argv[2]) / f"followed-{len(sys.argv)}", *sys.argv[3:])
