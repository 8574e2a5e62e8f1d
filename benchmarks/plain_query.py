"""An application under sluicegate against the same code as a plain Structured Streaming query, in one run.

Usage: plain_query.py [MILLION_LINES]

Word count: lines split and counted, with state, fused into one query under sluicegate. The plain query reads Parquet
files, one a batch, and writes its counts as Parquet in foreachBatch; both run in the same session with the same
settings, in turns. Throughput: large batches, lines a second of batch time, the best pass of each. Processor
time a batch: many small batches at one a second, of this process and all it started, loop and log included. What
bounds both: the aggregation; beside it sluicegate writes a manifest a batch and asks Spark for task times.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import results
from cpu import cpu_s
from sluicegate.lab.apps import wordcount
from sluicegate.spark.pipeline.runtime import start
from sluicegate.spark.session import spark_session

BATCHES, PASSES, SMALL_BATCHES, SMALL_LINES = 6, 3, 12, 500
Way = Callable[[SparkSession, Path, pa.Table, int, float], tuple[float, float]]


def main() -> None:
    lines = int(float(sys.argv[1]) * 1e6) if len(sys.argv) > 1 else 3_000_000
    spark = spark_session("local[2]", {"spark.driver.memory": "3g"})
    large, small = wordcount.rows("lines", 0, lines // BATCHES), wordcount.rows("lines", 0, SMALL_LINES)
    ways: dict[str, Way] = {"sluicegate": under_sluicegate, "plain": as_plain}
    rates: dict[str, list[float]] = {name: [] for name in ways}
    costs: dict[str, list[float]] = {name: [] for name in ways}
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(PASSES):
            for name, way in ways.items():
                rates[name].append(way(spark, Path(folder) / f"{name}-large{turn}", large, BATCHES, 0.0)[0])
                costs[name].append(way(spark, Path(folder) / f"{name}-small{turn}", small, SMALL_BATCHES, 1.0)[1])
                print(f"{name:9} {rates[name][-1]:12,.0f} lines/s  {costs[name][-1]:.3f} CPU s a batch", flush=True)
    spark.stop()
    for turn in range(PASSES):
        results.record(
            "plain",
            lines=lines,
            throughput_ratio=rates["sluicegate"][turn] / rates["plain"][turn],
            cpu_ratio=costs["sluicegate"][turn] / costs["plain"][turn],
        )
    best, least = {n: max(r) for n, r in rates.items()}, {n: min(c) for n, c in costs.items()}
    print(f"throughput: sluicegate over plain {best['sluicegate'] / best['plain']:.2f}")
    print(f"processor time a batch: sluicegate over plain {least['sluicegate'] / least['plain']:.2f}")


def under_sluicegate(
    spark: SparkSession, folder: Path, table: pa.Table, batches: int, every_s: float
) -> tuple[float, float]:
    with start(wordcount.build(), spark, folder, {"split+count": 2}) as running:
        feed = running.feed("lines")
        for _ in range(3):
            feed.append(table.slice(0, 1000))
            running.drain()
        began, used = time.time(), cpu_s(os.getpid())
        for _ in range(batches):
            feed.append(table)
            if every_s:
                time.sleep(every_s)
            else:
                running.drain()
        running.drain()
        used = cpu_s(os.getpid()) - used
        time.sleep(0.7)
        (name,) = [node.name for node in running.graph.nodes]
        seen = [(r.duration_s, r.rows) for r in running.records(name) if r.started_s >= began]
    return sum(rows for _, rows in seen) / sum(took for took, _ in seen), used / len(seen)


def as_plain(spark: SparkSession, folder: Path, table: pa.Table, batches: int, every_s: float) -> tuple[float, float]:
    (folder / "in").mkdir(parents=True)

    def write(batch: DataFrame, number: int) -> None:
        batch.write.mode("overwrite").parquet(str(folder / "out" / str(number)))

    def put(name: str, rows: pa.Table) -> None:
        pq.write_table(rows, folder / name)
        (folder / name).rename(folder / "in" / name)

    spark.conf.set("spark.sql.shuffle.partitions", "4")
    lines = spark.readStream.schema("text string").option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    query = (
        wordcount.count(wordcount.split(lines))
        .writeStream.outputMode("update")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .foreachBatch(write)
        .start()
    )
    for warm in range(3):
        put(f"warm{warm}.parquet", table.slice(0, 1000))
        query.processAllAvailable()
    used = cpu_s(os.getpid())
    seen: list[tuple[float, int]] = []
    for number in range(batches):
        put(f"{number}.parquet", table)
        if every_s:
            time.sleep(every_s)
        query.processAllAvailable()
        done = [p for p in query.recentProgress if p.numInputRows][-1]
        seen.append((done.durationMs["triggerExecution"] / 1e3, done.numInputRows))
    used = cpu_s(os.getpid()) - used
    query.stop()
    return sum(rows for _, rows in seen) / sum(took for took, _ in seen), used / len(seen)


if __name__ == "__main__":
    main()
