"""k of a stateful operator changed live, against Spark's own way: stop, repartition the state, start again.

Usage: stateful_rescale.py [KEYS]

One aggregation over many keys, the same state for both. sluicegate: k goes 1 -> 4 -> 2 while rows flow; the pause is
the longest gap between two published batches around a change, less the usual gap. Spark: the query is stopped, its
checkpoint repartitioned from 4 to 8 by Spark's own (private) call, and started again; the pause is from the last batch
before to the first after. What bounds ours: one batch; what bounds Spark's: rewriting the state and starting a query.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.runtime import start
from sluicegate.spark.session import spark_session


def count(rows: DataFrame) -> DataFrame:
    return rows.groupBy("key").count()


def main() -> None:
    keys = int(sys.argv[1]) if len(sys.argv) > 1 else 500_000
    spark = spark_session("local[4]", {"spark.driver.memory": "3g"})
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "count"
        gap, usual = live(spark, home, keys)
        theirs = repartitioned(spark, home, keys)
    spark.stop()
    beyond = max(gap - usual, 0.0)
    print(f"sluicegate: longest gap at a change of k {gap:.2f} s, usual gap {usual:.2f} s")
    print(f"          a pause of {beyond:.2f} s, {beyond / usual:.1f} batches")
    print(f"Spark:    stop, repartition, start {theirs:.2f} s, a pause of {theirs - usual:.2f} s")
    print(f"ratio of the gaps {theirs / gap:.1f}")


def pipeline() -> Pipeline:
    made = Pipeline("rescale")
    counts = made.operator("count", count, made.source("rows", "key long"), stateful=True, key_groups=4)
    made.sink("counts", counts)
    return made


def some(keys: int, seed: int, rows: int = 5000) -> pa.Table:
    return pa.table({"key": pa.array(np.random.default_rng(seed).integers(0, keys, rows))})


def live(spark: SparkSession, home: Path, keys: int) -> tuple[float, float]:
    with start(pipeline(), spark, home, {"count": 1}) as running:
        feed = running.feed("rows")
        feed.append(pa.table({"key": pa.array(np.arange(keys))}))
        running.drain()
        moves: list[float] = []
        began = time.time()
        for step in range(160):
            if step in (60, 90, 120):
                running.set_processors({"count": {60: 4, 90: 2, 120: 3}[step]})
                moves.append(time.time())
            feed.append(some(keys, step))
            time.sleep(0.2)
        running.drain()
        time.sleep(0.7)
        published = [r.published_s for r in running.records("count") if r.published_s > began + 5]
    gaps = [(b - a, a, b) for a, b in pairwise(published)]
    around = [gap for gap, a, b in gaps if any(a - 1.0 <= move <= b + 1.0 for move in moves)]
    calm = [gap for gap, a, b in gaps if not any(a - 1.0 <= move <= b + 1.0 for move in moves)]
    return max(around), statistics.median(calm)


def repartitioned(spark: SparkSession, home: Path, keys: int) -> float:
    """The same state, the same checkpoint: what a user of Spark alone would do for a ninth task."""
    running = start(pipeline(), spark, home)
    feed = running.feed("rows")
    feed.append(some(keys, 1))
    running.drain()
    began = time.time()
    running.stop()
    checkpoint = str(running.layout.checkpoint("count"))
    spark._streamingCheckpointManager.repartition(checkpoint, 8, False)
    running = start(pipeline(), spark, home)
    feed.append(some(keys, 2))
    running.drain()
    took = time.time() - began
    running.stop()
    return took


if __name__ == "__main__":
    main()
