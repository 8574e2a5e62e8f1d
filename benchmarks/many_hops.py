"""What hops cost: three operators fused and apart, then ten apart, on two cores; and what bounds it.

Usage: many_hops.py [SECONDS_EACH]

Light SQL operators in a row under a constant load, so that what is measured is the hop and not the work. Sojourn is
from a row's birth to its publication at the end, processor time that of this process and all it started. What bounds
it: every query runs its batches back to back, each of which costs a fixed time of planning, logging and committing;
once the queries together ask for more than the cores there are, batches last longer and all hops wait.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cpu import cpu_s
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.observing import sojourn_of
from sluicegate.spark.pipeline.runtime import start
from sluicegate.spark.session import spark_session

RATE_PER_S, FEED_S = 2000, 0.2


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 40.0
    spark = spark_session("local[2]", {"spark.driver.memory": "2g"})
    print("operators          mean s  p95 s  batch s  batches/s  cores")
    with tempfile.TemporaryDirectory() as folder:
        for name, number, fuse in (("3, one query", 3, True), ("3 apart", 3, False), ("10 apart", 10, False)):
            print(
                f"{name:17} {measured(spark, Path(folder) / name.replace(' ', ''), number, fuse, seconds)}", flush=True
            )
    spark.stop()


def add(number: int, rows: DataFrame) -> DataFrame:
    return rows.withColumn("value", F.col("value") + number)


def chain(number: int, fuse: bool) -> Pipeline:
    pipeline = Pipeline("hops")
    stream = pipeline.source("rows", "id long, value long")
    for i in range(number):
        stream = pipeline.operator(f"add{i}", partial(add, i), stream, fuse=fuse)
    pipeline.sink("out", stream)
    return pipeline


def measured(spark: SparkSession, folder: Path, number: int, fuse: bool, seconds: float) -> str:
    with start(chain(number, fuse), spark, folder) as running:
        feed = running.feed("rows")
        for _ in range(6):
            feed.append(some(feed.rows, 100))
            running.drain()
        began, used = time.time(), 0.0
        while (now := time.time()) < began + seconds:
            if not used and now > began + seconds / 4:
                settled, used = now, cpu_s(os.getpid())
            feed.append(some(feed.rows, round(RATE_PER_S * FEED_S)), [(now - FEED_S / 2, RATE_PER_S * FEED_S)])
            time.sleep(max(now + FEED_S - time.time(), 0.0))
        took, used = time.time() - settled, cpu_s(os.getpid()) - used
        running.drain()
        time.sleep(0.7)
        names = [node.name for node in running.graph.nodes]
        records = {name: [r for r in running.records(name) if r.started_s >= settled] for name in names}
    everything = [record for found in records.values() for record in found]
    seen = sojourn_of(records[names[-1]])
    if seen is None:
        raise SystemExit("no row came out: give more SECONDS_EACH")
    batch = sum(record.duration_s for record in everything) / len(everything)
    rates = f"{len(everything) / took:10.1f} {used / took:6.2f}"
    return f"{seen.mean_s:7.2f} {seen.p95_s or 0.0:6.2f} {batch:8.3f} {rates}"


def some(first: int, count: int) -> pa.Table:
    ids = np.arange(first, first + count, dtype=np.int64)
    return pa.table({"id": pa.array(ids), "value": pa.array(ids)})


if __name__ == "__main__":
    main()
