"""An instance moved from one node to another, against killing its executor: the longest gap at the sink.

Usage: redeployment.py [--rounds N] [--keys N]

A standalone cluster of two local workers with one executor each; an operator with state runs in one task on one of
them while rows flow. In each round it is first moved as Mc-Stream's redeployment does: the other executor is warm, rows
wait on the edge from one batch to the next, state is loaded there, the next batch runs there, the old place is free.
Then the executor it runs on is killed, and Spark brings state and tasks elsewhere. Both gaps are from the same run; the
answer is compared with what was fed, key by key.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import subprocess
import tempfile
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

import results
from sluicegate.spark.act.executors import Executors
from sluicegate.spark.cluster.java import QUICK_JAVA
from sluicegate.spark.cluster.standalone import Cluster
from sluicegate.spark.cluster.waiting import wait_until
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.runtime import Running, start
from sluicegate.spark.session import spark_session

_PATIENCE_S = 180.0
_ROWS = 500
SIZES = {
    "spark.driver.memory": "1g",
    "spark.executor.memory": "768m",
    "spark.executor.cores": "1",
    "spark.cores.max": "2",
    "spark.driver.extraJavaOptions": QUICK_JAVA,
    "spark.executor.extraJavaOptions": QUICK_JAVA,
    "spark.locality.wait": "10s",
}


def pipeline() -> Pipeline:
    made = Pipeline("redeployed")
    counts = made.operator(
        "count", lambda rows: rows.groupBy("key").count(), made.source("rows", "key long"), stateful=True, key_groups=2
    )
    made.sink("counts", counts)
    return made


class Flow:
    """Rows that keep coming; every gap between published batches is known afterwards."""

    def __init__(self, running: Running, keys: int) -> None:
        self.running, self.feed, self.fed = running, running.feed("rows"), Counter[int]()
        self._keys, self._rng = keys, np.random.default_rng(3)

    def some(self, rows: int = _ROWS) -> None:
        keys = self._rng.integers(0, self._keys, rows)
        self.fed.update(keys.tolist())
        self.feed.append(pa.table({"key": pa.array(keys)}))

    def for_s(self, seconds: float) -> None:
        until = time.time() + seconds
        while time.time() < until:
            self.some()
            time.sleep(0.25)

    def gap_after(self, at_s: float) -> float:
        """The longest gap that ends within the time after ``at_s``."""
        published = [record.published_s for record in self.running.records("count")]
        return max(b - a for a, b in pairwise(published) if b > at_s and a < at_s + 60)


def killed(executors: Executors, host: str, application: str) -> None:
    """Kill the executor on a host; its process is a child of the worker that this benchmark started."""
    victim = next(one for one in executors.all() if one.host == host)
    listed = subprocess.run(["ps", "-axww", "-o", "pid=,args="], capture_output=True, text=True, check=True).stdout
    (line,) = (
        line
        for line in listed.splitlines()
        if f"--executor-id {victim.id} " in line and f"--app-id {application} " in line and "bin/java" in line
    )
    os.kill(int(line.split()[0]), signal.SIGKILL)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--keys", type=int, default=100_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        cluster = Cluster(Path(folder) / "cluster", patience_s=_PATIENCE_S)
        try:
            status = cluster.up(workers=2, memory="1g")
            spark = spark_session(status.url, {**SIZES, **cluster.settings()}, "sluicegate redeployment")
            executors = Executors(spark)
            executors.wait_for(2, _PATIENCE_S)
            found = []
            with start(pipeline(), spark, Path(folder) / "run", {"count": 1}) as running:
                flow, hosts = Flow(running, given.keys), sorted({one.host for one in executors.all()})
                running.place({"count": (hosts[0],)})
                flow.some(given.keys)
                running.drain(_PATIENCE_S)
                flow.for_s(10)
                for number in range(given.rounds):
                    there = hosts[(number + 1) % 2]
                    at_s = time.time()
                    running.place({"count": (there,)})
                    flow.for_s(12)
                    running.drain(_PATIENCE_S)
                    time.sleep(0.5)
                    moved_s = flow.gap_after(at_s)
                    at_s = time.time()
                    flow.some()
                    time.sleep(0.3)
                    killed(executors, there, spark.sparkContext.applicationId)
                    flow.for_s(12)
                    running.drain(_PATIENCE_S)
                    time.sleep(0.5)
                    killed_s = flow.gap_after(at_s)
                    wait_until(lambda: executors.count() == 2, _PATIENCE_S, 0.2)
                    found.append({"moved_s": round(moved_s, 2), "killed_s": round(killed_s, 2)})
                    print(found[-1], flush=True)
                counted = running.read("count").groupBy("key").agg(F.max("count").alias("n")).collect()
                exact = {row["key"]: row["n"] for row in counted} == dict(flow.fed)
            spark.stop()
        finally:
            cluster.down()
    for one in found:
        results.record("redeployment", keys=given.keys, exact=exact, ratio=one["killed_s"] / one["moved_s"], **one)
    ratio = statistics.median(one["killed_s"] / one["moved_s"] for one in found)
    print(f"a killed executor leaves a gap {ratio:.1f} times as long; every key counted exactly: {exact}")


if __name__ == "__main__":
    main()
