from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from sluicegate.spark.controller import Control, Controller
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.runtime import start

PATIENCE_S = 180.0
ROWS = 240
"""So many that three instances are worth their tasks, also where batches cost twice what they do on a quiet machine."""


def one_is_slow(rows: DataFrame) -> DataFrame:
    """Each row waits 4 ms, at the first instance three times as long."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        slow = context is not None and context.partitionId() == 0
        for batch in batches:
            time.sleep(batch.num_rows * (0.012 if slow else 0.004))
            yield batch

    return rows.mapInArrow(work, "id long")


def some(first: int) -> pa.Table:
    return pa.table({"id": pa.array(np.arange(first, first + ROWS), pa.int64())})


def test_a_slow_instance_gets_fewer_rows_and_none_is_lost(spark: SparkSession, tmp_path: Path) -> None:
    pipeline = Pipeline("uneven")
    pipeline.sink("out", pipeline.operator("work", one_is_slow, pipeline.source("rows", "id long")))
    with start(pipeline, spark, tmp_path / "run", {"work": 3}) as running:
        feed = running.feed("rows")
        controller = Controller(running.layout, Control(slo=("mean=1s",), budget=3, interval_s=1.0))
        until, told = time.time() + PATIENCE_S, list[str]()
        shares: tuple[float, ...] = ()
        while not shares and time.time() < until:
            feed.append(some(feed.rows))
            running.drain()
            told = list(controller.step(time.time())[1].reasons)
            shares = running.plan().of("work").shares
        feed.append(some(feed.rows))
        running.drain()
        found = [row["id"] for row in running.read("work").collect()]
    assert shares[0] < 0.6 * min(shares[1:])
    assert any("work: rows by speed" in reason for reason in told)
    assert sorted(found) == list(range(feed.rows))
