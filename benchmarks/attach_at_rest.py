"""What an attached query at rest costs: batch times attached over detached, in turns, within one run of one query.

    python benchmarks/attach_at_rest.py [--rounds 12] [--batches 25]

The controller observes; the plan keeps the tasks as Spark has them. Aim: at most 1.02.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import time
from pathlib import Path

from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

import sluicegate
from sluicegate.spark.session import spark_session

PARTITIONS = 8


def durations_ms(query: StreamingQuery, count: int) -> list[float]:
    """Of so many batches from the next but one on."""
    progress = query.lastProgress
    first = (progress.batchId if progress else 0) + 2
    found: dict[int, float] = {}
    while len(found) < count:
        time.sleep(0.05)
        for one in query.recentProgress:
            if one.batchId >= first and "addBatch" in one.durationMs:
                found[one.batchId] = float(one.durationMs["triggerExecution"])
    return list(found.values())[:count]


def settled(record: Path, looks: int = 4) -> None:
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
    durations_ms(query, 40)
    times: dict[bool, list[float]] = {True: [], False: []}
    ratios = []
    for _ in range(rounds):
        sluicegate.detach(spark)
        times[False] += (plain := durations_ms(query, batches))
        sluicegate.attach(spark, observe=True, folder=str(folder / "record"))
        settled(folder / "record")
        times[True] += (attached := durations_ms(query, batches))
        ratios.append(statistics.median(attached) / statistics.median(plain))
    query.stop()
    spark.stop()
    shutil.rmtree(folder, ignore_errors=True)
    medians = {"attached_ms": statistics.median(times[True]), "plain_ms": statistics.median(times[False])}
    ratio = medians["attached_ms"] / medians["plain_ms"]
    print(json.dumps({**medians, "ratio": round(ratio, 4), "ratios": [round(one, 3) for one in ratios]}))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--batches", type=int, default=25)
    main(**vars(parser.parse_args()))
