"""200 state partitions on a small stream: batch time as it is, with k = 8, and after `repartition` to 16.

    python benchmarks/attach_partitions.py [--batches 6] [--partitions 200]

As it is and k = 8 in turns within one run of one query; then the query is stopped, its state repartitioned by Spark's
own call (RocksDB and HDFS-backed where that works), and started again. Ratios to the batch time as it is.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

import results
from sluicegate.errors import SluicegateError
from sluicegate.runlog.files import write_whole
from sluicegate.spark import repartition
from sluicegate.spark.session import spark_session

PROVIDERS = {
    "rocksdb": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    "hdfs": "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
}
FEW, AFTER, ROWS = 8, 16, 200


def session(folder: Path, provider: str, partitions: int) -> SparkSession:
    return spark_session(
        "local[2]",
        {
            "spark.driver.memory": "2g",
            "spark.plugins": "sluicegate.attach.SluicegatePlugin",
            "spark.sluicegate.folder": str(folder / "record"),
            "spark.sluicegate.controller": "none",
            "spark.sql.shuffle.partitions": str(partitions),
            "spark.sql.streaming.stateStore.providerClass": PROVIDERS[provider],
            "spark.sql.streaming.numRecentProgressUpdates": "200",
        },
    )


def counting(spark: SparkSession, folder: Path) -> StreamingQuery:
    rows = spark.readStream.schema("value long").option("maxFilesPerTrigger", 1).json(str(folder / "in"))
    counts = rows.groupBy((F.col("value") % 1000).alias("k")).count()
    writer = counts.writeStream.format("noop").outputMode("update").queryName("small")
    return writer.option("checkpointLocation", str(folder / "checkpoint")).start()


def fed(folder: Path, batches: int) -> None:
    """One file a batch."""
    (folder / "in").mkdir(exist_ok=True)
    before = len(list((folder / "in").iterdir()))
    for number in range(before, before + batches):
        lines = "".join(json.dumps({"value": number * ROWS + row}) + "\n" for row in range(ROWS))
        (folder / "in" / f"{number:04d}.json").write_text(lines, encoding="utf-8")


def took_ms(spark: SparkSession, folder: Path, batches: int) -> dict[int, float]:
    """Run the query over so many batches more, to its end; the time of each."""
    fed(folder, batches)
    query = counting(spark, folder)
    query.processAllAvailable()
    done = {p.batchId: float(p.durationMs["triggerExecution"]) for p in query.recentProgress if p.numInputRows > 0}
    query.stop()
    return done


def run(folder: Path, provider: str, batches: int, partitions: int) -> dict[str, object]:
    spark = session(folder, provider, partitions)
    # 0 leaves a batch as Spark has it: three batches of either kind in turns
    turns = [0] * 3 + [FEW] * 3
    plan = {"version": 1, "operators": {"small": {"processors": 1, "by_batch": turns}}, "executors": 0}
    write_whole(folder / "record" / "plan.json", json.dumps(plan))
    # the first batches of all compile; the first of each turn may find what the turn before left
    told = {batch: ms for batch, ms in took_ms(spark, folder, 3 + 3 * batches).items() if batch >= 3}
    plain = [ms for batch, ms in told.items() if batch % 6 in (1, 2)]
    fewer = [ms for batch, ms in told.items() if batch % 6 in (4, 5)]
    found: dict[str, object] = {"as_it_is_ms": round(statistics.median(plain), 1)}
    found["k8_ratio"] = round(statistics.median(fewer) / statistics.median(plain), 3)
    (folder / "record" / "plan.json").unlink()
    try:
        repartition.repartition(spark, folder / "checkpoint", AFTER)
        after = list(took_ms(spark, folder, 2 + batches).values())[2:]
        found["after_repartition_ratio"] = round(statistics.median(after) / statistics.median(plain), 3)
    except SluicegateError as problem:
        found["after_repartition_ratio"] = None
        found["why"] = str(problem).replace(f" of {folder / 'checkpoint'}", "")
    spark.stop()
    return found


def main(batches: int, partitions: int) -> None:
    for provider in PROVIDERS:
        folder = Path(tempfile.mkdtemp(prefix="attach-partitions-"))
        found = run(folder, provider, batches, partitions)
        results.record("attach_partitions", store=provider, partitions=partitions, batches=batches, **found)
        print(provider, found, flush=True)
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--batches", type=int, default=6)
    parser.add_argument("--partitions", type=int, default=200)
    main(**vars(parser.parse_args()))
