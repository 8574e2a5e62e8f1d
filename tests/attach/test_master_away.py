"""A standalone master that does not answer for a while: requests are repeated, and nothing else waits for it."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.attach.attached import PARTITIONS, attached_session, batches, put_plan, until
from tests.attach.query_kinds import BATCHES, COUNTS, LEFT, Streams, told, write_input

from sluicegate.runlog.files import read_if_there
from sluicegate.spark.cluster.standalone import Cluster
from sluicegate.spark.cluster.state import read_state

pytestmark = pytest.mark.slow


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path / "cluster", patience_s=300.0)
    try:
        cluster.up(workers=2, memory="512m")
        yield cluster
    finally:
        cluster.down()


@pytest.fixture
def spark(cluster: Cluster, tmp_path: Path) -> Iterator[SparkSession]:
    status = cluster.status()
    assert status is not None
    settings = {
        **cluster.settings(),
        "spark.executor.memory": "512m",
        "spark.executor.cores": "1",
        "spark.cores.max": "2",
        "spark.rpc.askTimeout": "10s",
        "spark.sluicegate.executors": "1:2",
        "spark.ui.enabled": "false",
    }
    session = attached_session(tmp_path / "record", settings, status.url)
    yield session
    session.stop()


def test_executors_follow_again_once_the_master_answers_and_tasks_follow_meanwhile(
    cluster: Cluster, spark: SparkSession, tmp_path: Path
) -> None:
    record = tmp_path / "record"
    write_input(tmp_path / "left", LEFT)
    state = read_state(cluster.folder)
    assert state is not None

    def executors() -> int:
        return int(json.loads(read_if_there(record / "nodes.json") or "{}").get("executors", 0))

    assert until(lambda: executors() == 2)
    put_plan(record, {"counts": {"processors": 3}}, executors=1)
    assert until(lambda: executors() == 1)
    state.master.send(signal.SIGSTOP)
    try:
        put_plan(record, {"counts": {"processors": 2}}, executors=2)
        assert until(lambda: (record / "said.jsonl").exists())
        counts = Streams(spark, tmp_path).left().groupBy("k").agg(F.count("*").alias("n"))
        writer = counts.writeStream.outputMode("update").format("memory").queryName("counts")
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
        assert writer.start().awaitTermination(600)
        assert executors() == 1
    finally:
        state.master.send(signal.SIGCONT)
    assert until(lambda: executors() == 2)
    assert told(spark.table("counts").collect()) == COUNTS
    assert until(lambda: len(batches(record, "counts")) >= BATCHES)
    assert {batch["tasks"] for batch in batches(record, "counts")} == {2} != {PARTITIONS}
    (said,) = (record / "said.jsonl").read_text().splitlines()
    assert "the master did not take a request for executors" in said
