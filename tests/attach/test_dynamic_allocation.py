"""Spark's own dynamic allocation is on: executors stay Spark's and that is said, tasks are moved all the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.attach.attached import MOVES, attached_session, batches, until, write_plan
from tests.attach.query_kinds import BATCHES, COUNTS, LEFT, Streams, told, write_input

pytestmark = pytest.mark.slow

SETTINGS = {
    "spark.executor.memory": "512m",
    "spark.executor.instances": "1",
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.minExecutors": "1",
    "spark.dynamicAllocation.maxExecutors": "1",
    "spark.sluicegate.slo": "p95=10s",
    "spark.sluicegate.executors": "1:2",
}


@pytest.fixture
def spark(tmp_path: Path) -> Iterator[SparkSession]:
    session = attached_session(tmp_path / "record", SETTINGS, "local-cluster[2,1,512]")
    yield session
    session.stop()


def test_executors_stay_spark_s_and_tasks_move(spark: SparkSession, tmp_path: Path) -> None:
    record = tmp_path / "record"
    write_input(tmp_path / "left", LEFT)
    # the plan asks for two executors; the bounds that the user gave Spark allow one
    write_plan(record, {"counts": {"processors": 1, "by_batch": MOVES}}, executors=2)
    counts = Streams(spark, tmp_path).left().groupBy("k").agg(F.count("*").alias("n"))
    writer = counts.writeStream.outputMode("update").format("memory").queryName("counts").trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    assert query.awaitTermination(120)
    assert told(spark.table("counts").collect()) == COUNTS
    assert until(lambda: len(batches(record, "counts")) >= BATCHES)
    tasks = [batch["tasks"] for batch in batches(record, "counts")]
    assert tasks == [MOVES[number % len(MOVES)] for number in range(len(tasks))]
    said = json.loads((record / "application.json").read_text())["no_executors"]
    assert said == "spark.dynamicAllocation.enabled is true, so executors stay Spark's; only tasks are moved"
    assert json.loads((record / "nodes.json").read_text())["executors"] == 1
