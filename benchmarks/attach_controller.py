"""What the controller of an attached application uses of a core, and whether it or the plugin grows.

    python benchmarks/attach_controller.py [--seconds 240]

A query of short batches under a promise, so that the controller fits, forecasts and decides at every look. Processor
time and resident memory of its process, and the driver's heap after a full collection, a quarter into the run and at
its end. With --seconds 3600 it is the hour of the aim. Aim: below 1% of a core, memory flat.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import results
import sluicegate
from cpu import command, cpu_s, memory_mb, tree
from sluicegate.spark.session import spark_session


def controller() -> int:
    return next(pid for pid in tree(os.getpid()) if "sluicegate.spark.attach.controller" in command(pid))


def heap_mb(spark: SparkSession) -> float:
    """Used after two full collections."""
    jvm: Any = spark._jvm
    for _ in range(2):
        jvm.java.lang.System.gc()
        time.sleep(0.5)
    runtime = jvm.java.lang.Runtime.getRuntime()
    return float(runtime.totalMemory() - runtime.freeMemory()) / 1e6


def main(seconds: float) -> None:
    folder = Path(tempfile.mkdtemp(prefix="attach-controller-"))
    settings = {"spark.sql.shuffle.partitions": "4", "spark.plugins": "", "spark.driver.memory": "1g"}
    spark = spark_session("local[2]", {**settings, "spark.sql.streaming.numRecentProgressUpdates": "100"})
    sluicegate.attach(spark, slo="p95=5s", folder=str(folder / "record"))
    rows = spark.readStream.format("rate").option("rowsPerSecond", 200).load()
    counts = rows.groupBy((F.col("value") % 200).alias("k")).count()
    writer = counts.writeStream.format("noop").outputMode("update").queryName("steady")
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).start()
    time.sleep(seconds / 4)
    pid = controller()
    first = (time.time(), cpu_s(pid), memory_mb(pid), heap_mb(spark), _batch(query))
    time.sleep(seconds * 3 / 4)
    last = (time.time(), cpu_s(pid), memory_mb(pid), heap_mb(spark), _batch(query))
    query.stop()
    spark.stop()
    shutil.rmtree(folder, ignore_errors=True)
    figures = {
        "share_of_a_core": (last[1] - first[1]) / (last[0] - first[0]),
        "memory_growth": last[2] / first[2],
        "heap_growth": last[3] / first[3],
        "controller_mb": last[2],
        "batches": last[4] - first[4],
        "seconds": seconds,
    }
    results.record("attach_controller", **figures)
    print(figures)


def _batch(query: Any) -> int:
    return int(query.lastProgress.batchId) if query.lastProgress else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=240.0)
    main(**vars(parser.parse_args()))
