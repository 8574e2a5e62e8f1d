"""The gap at the sink when k of a stateful operator changes: within its key groups, beyond them, and Spark's own way.

Usage: stateful_rescale.py [--state-mb 42,200,1000]

One aggregation over many keys with a kilobyte of state each. The state is made once, and the same folder is put back
for each way. A gap is the longest time between two published batches around a change while rows flow.

    within    k goes 1 -> 4 -> 2 -> 3 with 4 key groups: key groups change their task at the next batch
    beyond    4 -> 8 key groups, that one query repartitioned live, checked, started again; the others go on
    all       4 -> 8 partitions as a user of Spark alone would: stop the pipeline, repartition, start it again

What bounds ours within the groups: one batch. Beyond them: rewriting the state, reading it twice to check it, and
starting one query; ``all`` rewrites the same state, checks nothing and starts everything. All of it is bound by how
fast two cores and a disk read and write RocksDB's files.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import results
from sluicegate.spark.edges.offsets import state_partitions
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.runtime import Running, start
from sluicegate.spark.session import spark_session

_PATIENCE_S = 600.0
_HASHES = 8
"""Of 128 characters: a kilobyte of state a key."""
KEY_BYTES = 128 * _HASHES + 48
"""What a key's row in the state takes, before compression: the hashes, and key, count and lengths."""
_SOME_ROWS, _FILL_ROWS, _STEPS, _STEP_S = 2000, 200_000, 80, 0.25


def count(rows: DataFrame) -> DataFrame:
    """A count by key, with a kilobyte that belongs to the key and hardly compresses."""
    fat = F.concat(*(F.sha2(F.concat(F.col("key").cast("string"), F.lit(f"/{i}")), 512) for i in range(_HASHES)))
    counts = rows.withColumn("fat", fat).groupBy("key").agg(F.count("*").alias("n"), F.max("fat").alias("fat"))
    return counts.select("key", "n")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--state-mb", default="42,200,1000")
    given = parser.parse_args()
    spark = spark_session("local[4]", {"spark.driver.memory": "3g"}, "sluicegate stateful rescale")
    for state_mb in map(float, given.state_mb.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            one = measured(spark, Path(folder), int(state_mb * 1e6 / KEY_BYTES))
        results.record("rescale", state_mb=state_mb, **one)
        print({"state_mb": state_mb, **one}, flush=True)
    spark.stop()


def measured(spark: SparkSession, folder: Path, keys: int) -> dict[str, Any]:
    home, kept = folder / "count", folder / "kept"
    filled(spark, home, keys)
    shutil.copytree(home, kept)
    all_s, all_exact = everything(spark, home, keys)
    shutil.rmtree(home)
    kept.rename(home)
    within, usual, beyond, exact = live(spark, home, keys)
    return {
        "keys": keys,
        "usual_gap_s": round(usual, 2),
        "within_s": round(within, 2),
        "beyond_s": round(beyond, 2),
        "all_s": round(all_s, 2),
        "ratio": all_s / beyond,
        "within_ratio": all_s / within,
        "exact": exact and all_exact,
    }


def pipeline() -> Pipeline:
    made = Pipeline("rescale")
    counts = made.operator("count", count, made.source("rows", "key long"), stateful=True, key_groups=4)
    made.sink("counts", counts)
    return made


class Fed:
    """Rows by their numbers: every key once, then keys by lot, which anybody can draw again."""

    def __init__(self, running: Running, keys: int) -> None:
        self.feed, self.keys, self.count = running.feed("rows"), keys, np.ones(keys, dtype=np.int64)
        self._dice = np.random.default_rng(7)

    def some(self) -> None:
        drawn = self._dice.integers(0, self.keys, _SOME_ROWS)
        np.add.at(self.count, drawn, 1)
        self.feed.append(pa.table({"key": pa.array(drawn)}))

    def exact(self, running: Running) -> bool:
        """Whether every key ends with its number, and no count is in the sink twice."""
        of_a_key = (F.max("n").alias("n"), F.count("n").alias("rows"), F.countDistinct("n").alias("different"))
        found = running.read("count").groupBy("key").agg(*of_a_key)
        twice = found.where("rows <> different").limit(1).count()
        told = found.select("key", "n").toPandas().set_index("key")["n"].sort_index()
        return twice == 0 and np.array_equal(told.to_numpy(), self.count)


def filled(spark: SparkSession, home: Path, keys: int) -> None:
    """The state of all keys, in a folder that is stopped."""
    with start(pipeline(), spark, home, {"count": 1}) as running:
        feed = running.feed("rows")
        for first in range(0, keys, _FILL_ROWS):
            feed.append(pa.table({"key": pa.array(np.arange(first, min(first + _FILL_ROWS, keys)))}))
        running.drain(_PATIENCE_S)


def live(spark: SparkSession, home: Path, keys: int) -> tuple[float, float, float, bool]:
    with start(pipeline(), spark, home) as running:
        fed, moves = Fed(running, keys), list[float]()
        for _ in range(5):  # the first batches compile
            fed.some()
            running.drain(_PATIENCE_S)
        began = time.time()
        for step in range(_STEPS):
            if step in (ks := {_STEPS // 4: 4, _STEPS // 2: 2, 3 * _STEPS // 4: 3}):
                running.set_processors({"count": ks[step]})
                moves.append(time.time())
            fed.some()
            time.sleep(_STEP_S)
        asked = time.time()
        running.set_key_groups({"count": 8})
        while not done(running) and time.time() < asked + _PATIENCE_S:
            fed.some()
            time.sleep(_STEP_S)
        running.drain(_PATIENCE_S)
        if state_partitions(running.layout.checkpoint("count")) != 8:
            raise SystemExit("the key groups did not change")
        time.sleep(0.7)
        published = [r.published_s for r in running.records("count") if r.published_s > began]
        exact = fed.exact(running)
    gaps = [(b - a, a, b) for a, b in pairwise(published)]
    around = [gap for gap, a, b in gaps if b < asked and any(a - 1.0 <= move <= b + 1.0 for move in moves)]
    calm = [gap for gap, a, b in gaps if b < asked and not any(a - 1.0 <= move <= b + 1.0 for move in moves)]
    beyond = max(gap for gap, _, b in gaps if b >= asked)
    return max(around), statistics.median(calm or around), beyond, exact


def done(running: Running) -> bool:
    """Whether a batch was committed with the new groups."""
    groups = running.graph.node("count").key_groups == 8
    return groups and not running.layout.regroup("count").exists()


def everything(spark: SparkSession, home: Path, keys: int) -> tuple[float, bool]:
    """The same state, the same change of partitions: from the last batch before to the first after."""
    running = start(pipeline(), spark, home)
    fed = Fed(running, keys)
    for _ in range(5):
        fed.some()
        running.drain(_PATIENCE_S)
    time.sleep(0.7)
    began = running.records("count")[-1].published_s
    running.stop()
    manager: Any = spark._streamingCheckpointManager
    manager.repartition(str(running.layout.checkpoint("count")), 8, False)
    running.layout.regroup("count").write_text(
        json.dumps({"stage": "verified", "batch": last(running), "have": 4, "want": 8})
    )
    running = start(pipeline(), spark, home)
    fed.feed = running.feed("rows")
    since = len(running.records("count"))
    fed.some()
    running.drain(_PATIENCE_S)
    time.sleep(0.7)
    took = running.records("count")[since:][0].published_s - began
    exact = fed.exact(running)
    running.stop()
    return took, exact


def last(running: Running) -> int:
    """The batch before the one that Spark added."""
    commits = running.layout.checkpoint("count") / "commits"
    return max(int(path.name) for path in commits.iterdir() if path.name.isdigit()) - 1


if __name__ == "__main__":
    main()
