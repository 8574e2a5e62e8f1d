"""A pipeline with a Kafka edge in its middle, its rows, and its answer; run as a program it is killed half way.

    python edge_story.py FOLDER ADDRESS TOPIC

The driver, Python and Java, is killed when the records of one batch are in the topic and nobody has published them.
"""

from __future__ import annotations

import datetime as dt
import os
import signal
import sys
from collections import Counter
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from sluicegate.spark.edges.manifest import DataFile
from sluicegate.spark.edges.topic import KafkaTopic
from sluicegate.spark.kafka import records
from sluicegate.spark.pipeline import batch_writer
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.runtime import Running, start
from sluicegate.spark.session import spark_session

SCHEMA = "id long, at timestamp, price decimal(12,3), ratio double, raw binary, tags array<string>, note string"
EACH, KILLED_AT, WINDOW_S = 200, 2, 100
"""Rows of a table; the batch whose records nobody publishes; rows are about a second of event time apart."""


def edged(address: str, topic: str) -> Pipeline:
    pipeline = Pipeline("edged")
    rows = pipeline.source("rows", SCHEMA)
    parsed = pipeline.operator("parse", lambda f: f.where("id % 7 != 3").withWatermark("at", "2 seconds"), rows)
    pipeline.edge(parsed, kafka=address, topic=topic, partitions=3)
    pipeline.sink("all", pipeline.operator("keep", lambda frame: frame.withColumn("bucket", F.expr("id % 5")), parsed))
    counts = pipeline.operator("count", _counts, parsed, stateful=True, key_groups=4)
    pipeline.sink("counts", counts)
    windows = pipeline.operator("window", _windows, parsed, stateful=True, mode="append", key_groups=2)
    pipeline.sink("windows", windows)
    return pipeline


def _counts(frame: DataFrame) -> DataFrame:
    return frame.groupBy((F.col("id") % 10).alias("k")).count()


def _windows(frame: DataFrame) -> DataFrame:
    counted = frame.groupBy(F.window("at", f"{WINDOW_S} seconds").alias("w")).count()
    return counted.select(F.col("w.start").alias("since"), "count")


def row(number: int) -> dict[str, Any]:
    """Types that JSON could spoil: microseconds, decimals, bytes, nothing at all."""
    return {
        "id": number,
        "at": dt.datetime(2026, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=number * 1_000_003),
        "price": Decimal(number * 37 % 100_000) / 1000,
        "ratio": number / 7 if number % 11 else float("nan"),
        "raw": bytes([number % 256, 0, 255]),
        "tags": [f"t{number % 3}", 'a "quoted" \n one'][: number % 3],
        "note": None if number % 4 == 0 else f"über {number}",
    }


def table(first: int) -> pa.Table:
    columns = StructType.fromDDL(SCHEMA)
    assert isinstance(columns, StructType)
    schema = to_arrow_schema(columns, timezone="UTC")
    return pa.Table.from_pylist([row(number) for number in range(first, first + EACH)], schema)


def expected(rows: int) -> tuple[list[dict[str, Any]], dict[int, int]]:
    """What the two sinks hold after so many rows."""
    kept = [{**row(number), "bucket": number % 5} for number in range(rows) if number % 7 != 3]
    return kept, dict(Counter(one["id"] % 10 for one in kept))


def closed_windows(rows: int) -> dict[int, int]:
    """Rows of each window that the watermark has passed, by its start in seconds since the epoch."""
    times_s = [row(number)["at"].timestamp() for number in range(rows) if number % 7 != 3]
    counts = Counter(int(at_s // WINDOW_S * WINDOW_S) for at_s in times_s)
    return {since: n for since, n in counts.items() if since + WINDOW_S <= max(times_s) - 2.0}


def run(running: Running, rows: int) -> None:
    feed = running.feed("rows")
    for first in range(feed.rows, rows, EACH):
        feed.append(table(first))
        running.drain(180)


def main(folder: str, address: str, topic: str) -> None:
    spark = spark_session("local[3]", {"spark.driver.memory": "1g"})
    calls = [0]

    def killing(batch: DataFrame, at: KafkaTopic) -> tuple[DataFile, ...]:
        found = records.send(batch, at)
        calls[0] += 1
        if calls[0] > KILLED_AT:
            gateway: Any = spark.sparkContext._gateway
            os.kill(gateway.proc.pid, signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    setattr(batch_writer, "send", killing)  # noqa: B010
    with start(edged(address, topic), spark, folder, {"parse": 2, "keep": 1, "count": 3}) as running:
        run(running, 10 * EACH)


if __name__ == "__main__":
    main(*sys.argv[1:])
