"""One light SQL operator with an edge at each side, against Spark's own Parquet source and sink, in one run.

Usage: edge_throughput.py [MILLION_ROWS]

Both take the same rows in batches of the same size, back to back, on two cores, and keep what they write; they take
turns, and the best pass of each counts, since the first ones compile. What bounds both: decoding and encoding Parquet;
batches cost little at this size.
"""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import results
from sluicegate.runlog.plan_file import PlanFile
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.runtime import start
from sluicegate.spark.session import spark_session

BATCHES = 8
PASSES = 3
SCHEMA = "id long, user long, amount double"


def light(rows: DataFrame) -> DataFrame:
    return rows.where("id % 10 <> 3").selectExpr("id", "user", "amount * 1.19 as amount")


def main() -> None:
    rows = int(float(sys.argv[1]) * 1e6) if len(sys.argv) > 1 else 16_000_000
    spark = spark_session(
        "local[2]", {"spark.driver.memory": "3g", "spark.sql.streaming.numRecentProgressUpdates": "1000"}
    )
    table = made(rows // BATCHES)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        passes = [
            (through_edges(spark, home / f"edge{i}", table), through_parquet(spark, home / f"parquet{i}", table))
            for i in range(PASSES)
        ]
    spark.stop()
    ours, theirs = (max(rates) for rates in zip(*passes, strict=True))
    for a, b in passes:
        results.record("edges", rows=rows, edges_per_s=a, parquet_per_s=b, ratio=a / b)
    print(f"sluicegate's edges     {ours:12,.0f} rows/s")
    print(f"Spark's own Parquet  {theirs:12,.0f} rows/s")
    print(f"ratio {ours / theirs:.2f}; pass by pass {', '.join(f'{a / b:.2f}' for a, b in passes)}")


def made(rows: int) -> pa.Table:
    ids = np.arange(rows, dtype=np.int64)
    return pa.table({"id": pa.array(ids), "user": pa.array(ids * 7919 % 100_003), "amount": pa.array(ids % 997 * 0.5)})


def through_edges(spark: SparkSession, folder: Path, table: pa.Table) -> float:
    pipeline = Pipeline("light")
    out = pipeline.operator("light", light, pipeline.source("rows", SCHEMA))
    pipeline.sink("out", out)
    with start(pipeline, spark, folder, {"light": 2}) as running:
        feed = running.feed("rows")
        feed.append(table.slice(0, 1000))
        running.drain()
        one_table_a_batch = {n: replace(one, most_rows=table.num_rows) for n, one in running.plan().operators.items()}
        PlanFile(running.layout.plan).change(one_table_a_batch)
        for _ in range(BATCHES):
            feed.append(table)
        running.drain()
        time.sleep(0.7)
        return _rate([(r.started_s, r.duration_s, r.rows) for r in running.records("light")[1:]])


def through_parquet(spark: SparkSession, folder: Path, table: pa.Table) -> float:
    (folder / "in").mkdir(parents=True)
    query = (
        light(spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / "in")))
        .writeStream.format("parquet")
        .option("path", str(folder / "out"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .start()
    )
    for i in range(BATCHES):
        draft = folder / f"{i}.parquet"
        # as many row groups as Spark would cut, so that both cores have work
        pq.write_table(table, draft, row_group_size=table.num_rows // 4)
        draft.rename(folder / "in" / draft.name)
    seen: dict[int, tuple[float, float, int]] = {}
    while sum(rows for _, _, rows in seen.values()) < table.num_rows * BATCHES:
        time.sleep(0.2)
        for progress in query.recentProgress:
            if progress.numInputRows:
                seen[progress.batchId] = (0.0, progress.durationMs["triggerExecution"] / 1e3, progress.numInputRows)
    query.stop()
    return _rate(list(seen.values()))


def _rate(batches: list[tuple[float, float, int]]) -> float:
    """Rows a second of batch time; the first batch compiles and is left out."""
    counted = batches[1:]
    return sum(rows for _, _, rows in counted) / sum(took for _, took, _ in counted)


if __name__ == "__main__":
    main()
