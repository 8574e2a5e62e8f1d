"""A session attached without the plugin, whose executors have no class of ours: as where --jars replaces spark.jars."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.attach.attached import MOVES, PARTITIONS, batches, until, write_plan
from tests.attach.query_kinds import BATCHES, COUNTS, LEFT, Streams, told, write_input

import sluicegate
from sluicegate.spark.session import spark_session

pytestmark = pytest.mark.slow


@pytest.fixture
def spark() -> Iterator[SparkSession]:
    session = spark_session(
        "local-cluster[1,2,512]",
        {
            "spark.driver.memory": "1g",
            "spark.executor.memory": "512m",
            "spark.executor.extraClassPath": "",
            "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.LocalFileSystem",
            "spark.plugins": "",
            "spark.sluicegate.controller": "none",
            "spark.sluicegate.pace": "yes",
            "spark.sql.shuffle.partitions": str(PARTITIONS),
        },
        "a session",
    )
    yield session
    session.stop()


def test_tasks_are_moved_exactly_and_what_a_query_sorts_stays_sorted(spark: SparkSession, tmp_path: Path) -> None:
    record, out = tmp_path / "record", str(tmp_path / "out")
    sluicegate.attach(spark, slo="p95=10s", folder=str(record))
    write_input(tmp_path / "left", LEFT)
    moved = {"processors": 1, "by_batch": MOVES}
    write_plan(record, {"counts": moved, "sorted": moved})
    counts = Streams(spark, tmp_path).left().groupBy("k").agg(F.count("*").alias("n"))
    writer = counts.writeStream.outputMode("update").format("memory").queryName("counts").trigger(availableNow=True)
    assert writer.option("checkpointLocation", str(tmp_path / "a")).start().awaitTermination(120)
    assert told(spark.table("counts").collect()) == COUNTS
    assert until(lambda: len(batches(record, "counts")) >= BATCHES)
    tasks = [batch["tasks"] for batch in batches(record, "counts")]
    assert tasks == [MOVES[number % len(MOVES)] for number in range(len(tasks))]

    def write(rows: DataFrame, batch: int) -> None:
        rows.sortWithinPartitions("v").select((F.col("v") + 1).alias("u")).write.mode("append").parquet(out)

    each = Streams(spark, tmp_path).left().repartition(PARTITIONS, "k").writeStream.foreachBatch(write)
    each = each.queryName("sorted").trigger(availableNow=True)
    assert each.option("checkpointLocation", str(tmp_path / "b")).start().awaitTermination(120)
    files: list[list[Any]] = [pq.read_table(path)["u"].to_pylist() for path in Path(out).glob("*.parquet")]
    assert sorted(u for file in files for u in file) == [row.v + 1 for row in LEFT]
    assert [file for file in files if file != sorted(file)] == []
    assert until(lambda: len(batches(record, "sorted")) >= BATCHES)
    assert min(batch["tasks"] for batch in batches(record, "sorted")) == 1
