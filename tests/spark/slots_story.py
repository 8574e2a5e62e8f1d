"""A pipeline under MBA and SAM on a cluster: executors are slots, and every task is pinned to the one it is mapped to.

    python slots_story.py CLUSTER FOLDER

The load makes MBA want several slots; once all threads are mapped the plan is left alone, and where the tasks of the
next batches really ran is read from Spark. At the end it gives what happened as one line of JSON.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from sluicegate.config.profile_file import ProfileFile, write_profile
from sluicegate.domain import ProfilePoint, Shape, TaskProfile
from sluicegate.runlog.batch_log import BatchRecord, Tail
from sluicegate.spark.act.nodes import LocalNodes
from sluicegate.spark.cluster.java import QUICK_JAVA
from sluicegate.spark.cluster.standalone import Cluster
from sluicegate.spark.cluster.waiting import wait_until
from sluicegate.spark.controller import Control, Controller
from sluicegate.spark.ground import Ground
from sluicegate.spark.observe import task_times
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.runtime import Running, start
from sluicegate.spark.session import spark_session

PATIENCE_S = 300.0
SLOT_TASKS = 2
SHAPE = Shape(slots_per_executor=SLOT_TASKS, least=1, most=4, settle_s=5.0)
ROWS_A_SECOND = 230
# Two threads of "call" on a slot do 150 rows/s: what is fed is a full bundle of 2 threads and a rest of 1, which does
# nearly as much alone, even where a busy machine makes it look like 160 or 290. "note" fits beside the endpoints.
PROFILES = {
    "call": (ProfilePoint(1, 145.0, 0.4, 0.1), ProfilePoint(2, 150.0, 0.6, 0.1)),
    "note": (ProfilePoint(1, 400.0, 0.2, 0.1), ProfilePoint(2, 600.0, 0.3, 0.1)),
}
SIZES = {
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    "spark.executor.cores": str(SLOT_TASKS),
    "spark.executor.instances": "1",
    "spark.cores.max": str(SHAPE.slots),
    "spark.locality.wait": "20s",
    "spark.driver.extraJavaOptions": QUICK_JAVA,
    "spark.executor.extraJavaOptions": QUICK_JAVA,
}
BATCHES_SEEN = 10


def waits(rows: DataFrame) -> DataFrame:
    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            time.sleep(batch.num_rows * 0.004)
            yield batch

    return rows.mapInArrow(work, "id long")


def pipeline() -> Pipeline:
    made = Pipeline("slots")
    called = made.operator("call", waits, made.source("rows", "id long"), fuse=False)
    made.sink("out", made.operator("note", lambda rows: rows, called, fuse=False))
    return made


def feed(running: Running) -> None:
    """A second's load."""
    one = running.feed("rows")
    one.append(pa.table({"id": pa.array(np.arange(one.rows, one.rows + ROWS_A_SECOND), pa.int64())}))


def main(cluster: Cluster, folder: Path) -> None:
    status = cluster.status()
    if status is None:
        raise SystemExit("no cluster")
    task_times._SINGLE_TASKS_EVERY_S = 0.0
    profiles = folder / "profiles"
    profiles.mkdir(parents=True)
    for name, points in PROFILES.items():
        (profiles / f"{name}.toml").write_text(write_profile(ProfileFile(TaskProfile(name, points))))
    nodes = LocalNodes(cluster, 4, "2g", PATIENCE_S)
    ground = Ground(status.url, {**SIZES, **cluster.settings()}, SHAPE, nodes)
    spark = spark_session(ground.master, ground.settings)
    fleet = ground.fleet(spark)
    assert fleet is not None
    control = Control(
        "mba", ("mean=20s",), SHAPE.slots, 1.0, 1.0, 1.0, mapper="sam", routing="slot-aware", profiles=str(profiles)
    )
    with start(pipeline(), spark, folder / "run", fuse=False) as running, fleet(running):
        controller = Controller(running.layout, control)
        until = time.time() + PATIENCE_S
        due_s = time.time()
        mapped = False
        while not mapped and time.time() < until:
            feed(running)
            due_s = max(due_s + 1.0, time.time())
            time.sleep(max(due_s - time.time(), 0.0))
            controller.step(time.time())
            running.check()
            plan = running.plan()
            ks = {name: plan.of(name).processors for name in PROFILES}
            mapped = ks["call"] > 2 and all(len(plan.of(name).hosts) == k for name, k in ks.items())
        running.drain(PATIENCE_S)
        plan, since_s = running.plan(), time.time()
        for _ in range(BATCHES_SEEN):
            feed(running)
            running.drain(PATIENCE_S)

        def logged(name: str) -> list[BatchRecord]:
            return [record for record in running.records(name) if record.started_s > since_s]

        wait_until(lambda: all(len(logged(name)) >= BATCHES_SEEN for name in PROFILES), 60.0, 0.1)
        found = sorted(row["id"] for row in running.read("note").collect())
        seen = {
            "mapped": mapped,
            "processors": {name: plan.of(name).processors for name in PROFILES},
            "places": {name: plan.of(name).hosts for name in PROFILES},
            "shares": {name: plan.of(name).shares for name in PROFILES},
            "ran": {name: [record.task_on for record in logged(name) if record.task_on] for name in PROFILES},
            "rows": [record.task_rows for record in logged("call") if record.task_rows],
            "rates": {point.threads: point.rate_per_s for point in PROFILES["call"]},
            "exact": found == list(range(running.feed("rows").rows)),
            "changes": [c for line in Tail(running.layout.decisions).lines() for c in json.loads(line)["changes"]],
            "reasons": [json.loads(line)["reasons"] for line in Tail(running.layout.decisions).lines()][-1:],
        }
    spark.stop()
    sys.stdout.write(json.dumps(seen) + "\n")


if __name__ == "__main__":
    main(Cluster(Path(sys.argv[1]), PATIENCE_S), Path(sys.argv[2]) / "slots")
