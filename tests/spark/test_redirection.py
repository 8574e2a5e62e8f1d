from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
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


MANY = 2000
"""Rows of a batch whose slow instance lags by more than Mc-Stream's bound on the deviation of queues, 102 rows."""


def slow_while(there: Path) -> Callable[[DataFrame], DataFrame]:
    """Each row waits 1 ms, at the first instance three times as long while the file is there."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        slow = context is not None and context.partitionId() == 0 and there.exists()
        for batch in batches:
            time.sleep(batch.num_rows * (0.003 if slow else 0.001))
            yield batch

    return lambda rows: rows.mapInArrow(work, "id long")


@pytest.mark.slow
@pytest.mark.long
def test_mc_stream_redirects_by_the_queues_of_instances_and_withdraws_it_when_they_are_equal_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    slow, pipeline = tmp_path / "slow", Pipeline("uneven")
    slow.touch()
    pipeline.sink("out", pipeline.operator("work", slow_while(slow), pipeline.source("rows", "id long")))
    with start(pipeline, spark, tmp_path / "run", {"work": 3}) as running:
        feed = running.feed("rows")
        controller = Controller(running.layout, Control("mc-stream", ("mean=3s",), 3, interval_s=1.0))

        def told_once(done: Callable[[tuple[float, ...]], bool]) -> list[str]:
            until, told = time.time() + PATIENCE_S, list[str]()
            while not done(running.plan().of("work").shares) and time.time() < until:
                feed.append(pa.table({"id": pa.array(np.arange(feed.rows, feed.rows + MANY), pa.int64())}))
                running.drain()
                told = list(controller.step(time.time())[1].reasons)
            return told

        redirected = told_once(bool)
        shares = running.plan().of("work").shares
        slow.unlink()
        withdrawn = told_once(lambda now: not now)
        after = running.plan().of("work").shares
        running.drain()
        found = [row["id"] for row in running.read("work").collect()]
    assert shares, redirected
    assert shares[0] < min(shares[1:])
    assert after == (), withdrawn
    assert any("equally fast again" in reason for reason in withdrawn), withdrawn
    assert sorted(found) == list(range(feed.rows))
