"""An edge that is a Kafka topic, against the same two queries with Spark's own Kafka sink and source, in one run.

Usage: kafka_edges.py [--rows 200000] [--passes 3]

A light SQL operator, a topic of four partitions, a second light operator, and a sink of Parquet files; both ways on two
cores, a batch for every table that is fed, in turns over one real broker. Rows are records of JSON both ways. Rows a
second are from the first table fed until the last row is in the sink; a first pass of a few rows compiles. What bounds
ours: records pass through Python's Kafka client, for which Spark starts no consumer of its own and keeps no offsets;
Spark's own pass through Java's. Ours is exactly once, Spark's sink at least once: in this run both were exact.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import results
from edge_throughput import SCHEMA, light, made
from realtime import broker
from sluicegate.runlog.plan_file import PlanFile
from sluicegate.spark.edges.topic import KafkaTopic
from sluicegate.spark.kafka.connector import add_connector
from sluicegate.spark.kafka.edge import make_topic
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.runtime import start
from sluicegate.spark.session import spark_session

BATCHES, PARTITIONS, PATIENCE_S = 8, 4, 300.0
OUT = "id long, user long, amount double"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--passes", type=int, default=3)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, broker(Path(folder) / "kafka") as address:
        spark = spark_session("local[2]", {"spark.driver.memory": "2g"})
        add_connector(spark)
        ways = {"ours": through_an_edge, "spark": through_spark}
        small, large = made(1000), made(asked.rows // BATCHES)
        for name, way in ways.items():
            way(spark, Path(folder) / f"warm-{name}", address, small)
        for number in range(asked.passes):
            found = {name: way(spark, Path(folder) / f"{name}{number}", address, large) for name, way in ways.items()}
            (ours, wrong), (theirs, also) = found["ours"], found["spark"]
            line = {"rows": asked.rows, "edge_per_s": ours, "spark_per_s": theirs, "ratio": ours / theirs}
            results.record("kafka_edges", **line, exact=not wrong, spark_exact=not also)
            print({key: round(value, 2) for key, value in line.items()}, wrong, also, flush=True)
        spark.stop()


def second(rows: DataFrame) -> DataFrame:
    return rows.where("user % 10 <> 3")


def through_an_edge(spark: SparkSession, folder: Path, address: str, table: pa.Table) -> tuple[float, int]:
    """Rows a second through a pipeline with a Kafka edge in its middle; and rows that are missing or too many."""
    pipeline = Pipeline("edged")
    first = pipeline.operator("light", light, pipeline.source("rows", SCHEMA))
    pipeline.edge(first, kafka=address, topic=f"ours-{folder.name}", partitions=PARTITIONS)
    pipeline.sink("out", pipeline.operator("second", second, first))
    with start(pipeline, spark, folder, {"light": 2, "second": 2}) as running:
        one_table_a_batch = {name: replace(one, most_rows=1) for name, one in running.plan().operators.items()}
        PlanFile(running.layout.plan).change(one_table_a_batch)
        feed, began_s = running.feed("rows"), time.monotonic()
        for _ in range(BATCHES):
            feed.append(table)
        running.drain(PATIENCE_S)
        took_s = time.monotonic() - began_s
        return BATCHES * table.num_rows / took_s, running.read("second").count() - expected(table)


def through_spark(spark: SparkSession, folder: Path, address: str, table: pa.Table) -> tuple[float, int]:
    """The same with Spark's own file source, Kafka sink, Kafka source and Parquet sink: two queries."""
    topic = KafkaTopic(address, f"spark-{folder.name}", PARTITIONS, ())
    make_topic(topic)
    (folder / "in").mkdir(parents=True)
    rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    records = light(rows).select(F.to_json(F.struct("*")).alias("value"))
    writer = records.writeStream.format("kafka").option("kafka.bootstrap.servers", address).option("topic", topic.topic)
    first = writer.option("checkpointLocation", str(folder / "first")).start()
    source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", address)
    read = source.option("subscribe", topic.topic).option("startingOffsets", "earliest").load()
    parsed = read.select(F.from_json(F.col("value").cast("string"), OUT).alias("row")).select("row.*")
    sink = second(parsed).writeStream.format("parquet").option("path", str(folder / "out"))
    last = sink.option("checkpointLocation", str(folder / "last")).start()
    wanted, began_s = BATCHES * light_rows(table), time.monotonic()
    for number in range(BATCHES):
        draft = folder / f"{number}.parquet"
        pq.write_table(table, draft, row_group_size=max(table.num_rows // 4, 1))
        draft.rename(folder / "in" / draft.name)
    seen: dict[int, int] = {}
    while sum(seen.values()) < wanted and time.monotonic() < began_s + PATIENCE_S:
        time.sleep(0.05)
        seen |= {progress.batchId: progress.numInputRows for progress in last.recentProgress}
    took_s = time.monotonic() - began_s
    first.stop()
    last.stop()
    return BATCHES * table.num_rows / took_s, spark.read.parquet(str(folder / "out")).count() - expected(table)


def light_rows(table: pa.Table) -> int:
    """How many rows of a table the first operator passes on."""
    return int((_numbers(table, "id") % 10 != 3).sum())


def expected(table: pa.Table) -> int:
    """Rows that come out, worked out without Spark."""
    through = (_numbers(table, "id") % 10 != 3) & (_numbers(table, "user") % 10 != 3)
    return BATCHES * int(through.sum())


def _numbers(table: pa.Table, column: str) -> Any:
    return table[column].to_numpy()


if __name__ == "__main__":
    main()
