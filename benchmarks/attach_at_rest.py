"""What an attached query at rest costs: batch and processor time attached over detached, in turns, in one query.

    python benchmarks/attach_at_rest.py [--rounds 14] [--batches 12]

The controller observes; the plan keeps the tasks as Spark has them. Many short rounds: each gives a pair of medians,
the figure is the median of the pairs' ratios. Processor time is that of the driver and all it started, the controller
among them, per batch. Aim: at most 1.02.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path

from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

import results
import sluicegate
from cpu import cpu_s
from sluicegate.spark.session import spark_session

PARTITIONS = 8


def last_batch(query: StreamingQuery) -> int:
    return query.lastProgress.batchId if query.lastProgress else -1


def measured(query: StreamingQuery, count: int) -> tuple[float, float]:
    """Of so many batches from the next but one on: their median time in ms, and processor seconds for each."""
    first, found = max(last_batch(query), 0) + 2, dict[int, float]()
    while last_batch(query) < first - 1:
        time.sleep(0.02)
    began_s, began = cpu_s(os.getpid()), last_batch(query)
    while len(found) < count:
        time.sleep(0.05)
        for one in query.recentProgress:
            if one.batchId >= first and "addBatch" in one.durationMs:
                found[one.batchId] = float(one.durationMs["triggerExecution"])
    took_s, ended = cpu_s(os.getpid()) - began_s, last_batch(query)
    return statistics.median(list(found.values())[:count]), took_s / max(ended - began, 1)


def settled(record: Path, looks: int = 3) -> None:
    """The controller has started (imports take a second or two of processor time) and looks at the query."""
    ticks = record / "ticks.jsonl"
    before = ticks.stat().st_size if ticks.exists() else 0
    seen = 0
    while seen < looks:
        time.sleep(0.5)
        size = ticks.stat().st_size if ticks.exists() else 0
        seen, before = seen + (size > before), size


def main(rounds: int, batches: int) -> None:
    folder = Path(tempfile.mkdtemp(prefix="attach-at-rest-"))
    settings = {"spark.sql.shuffle.partitions": str(PARTITIONS), "spark.plugins": "", "spark.driver.memory": "1g"}
    spark = spark_session("local[2]", {**settings, "spark.sql.streaming.numRecentProgressUpdates": "100"})
    sluicegate.attach(spark, observe=True, folder=str(folder / "record"))
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 500).load()
    counts = rows.groupBy((F.col("value") % 200).alias("k")).count()
    writer = counts.writeStream.format("noop").outputMode("update").queryName("at_rest")
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).start()
    measured(query, 40)
    times: dict[bool, list[float]] = {True: [], False: []}
    cpu: dict[bool, list[float]] = {True: [], False: []}
    for number in range(rounds):
        # who comes first changes, so that what drifts is shared
        for attached in (True, False) if number % 2 else (False, True):
            sluicegate.detach(spark)
            if attached:
                sluicegate.attach(spark, observe=True, folder=str(folder / "record"))
                settled(folder / "record")
            took_ms, took_cpu_s = measured(query, batches)
            times[attached].append(took_ms)
            cpu[attached].append(took_cpu_s)
    query.stop()
    spark.stop()
    shutil.rmtree(folder, ignore_errors=True)
    for number in range(rounds):
        batch, used = (what[True][number] / what[False][number] for what in (times, cpu))
        results.record(
            "attach_at_rest", batches=batches, batch_ratio=batch, cpu_ratio=used, plain_ms=times[False][number]
        )
        print(f"attached over plain: batch time {batch:.3f}, processor time {used:.3f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=14)
    parser.add_argument("--batches", type=int, default=12)
    main(**vars(parser.parse_args()))
