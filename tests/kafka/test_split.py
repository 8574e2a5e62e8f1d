"""An attached query reads Kafka in fewer and in more tasks than the topic has partitions, live, and rows stay exact."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.attach.attached import attached_session, batches, until, write_plan
from tests.kafka.producing import Numbers

from sluicegate.lab.chaos.broker import Broker

pytestmark = pytest.mark.slow
PARTITIONS = 2


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("split") / "record"


@pytest.fixture(scope="module")
def attached(record: Path) -> Iterator[SparkSession]:
    session = attached_session(record, {"spark.sluicegate.pace": "true"}, kafka=True)
    yield session
    session.stop()


def test_two_partitions_are_read_in_six_tasks_in_one_and_in_two_again(
    kafka: Broker, attached: SparkSession, record: Path, tmp_path: Path
) -> None:
    numbers = Numbers(kafka, kafka.topic(PARTITIONS), PARTITIONS)
    rows = (
        attached.readStream.format("kafka")
        .option("kafka.bootstrap.servers", kafka.address)
        .option("subscribe", numbers.topic)
        .option("startingOffsets", "earliest")
        .load()
        .select(F.split(F.col("value").cast("string"), " ")[0].cast("long").alias("id"))
    )
    writer = rows.writeStream.format("memory").queryName("read").option("checkpointLocation", str(tmp_path / "read"))
    counts = rows.groupBy((F.col("id") % 5).alias("k")).agg(F.count("*").alias("n"))
    counting = counts.writeStream.format("memory").outputMode("complete").queryName("counted")
    counting = counting.option("checkpointLocation", str(tmp_path / "counted"))
    numbers.send(60)
    queries = [writer.start(), counting.start()]

    def after(plan: dict[str, dict[str, object]], tasks: int) -> None:
        """Rows come under a plan until a batch of both queries has read them in so many tasks."""
        write_plan(record, plan)

        def read() -> bool:
            numbers.send(60)
            for query in queries:
                query.processAllAvailable()
            return all(_read_in(record, name) == tasks for name in ("read", "counted"))

        assert until(read, 90), (tasks, [_read_in(record, name) for name in ("read", "counted")])

    try:
        after({}, PARTITIONS)
        after({name: {"processors": 0, "spread": 6} for name in ("read", "counted")}, 6)
        after({name: {"processors": 0, "stages": {"scan": 1}} for name in ("read", "counted")}, 1)
        after({}, PARTITIONS)
        write_plan(record, {"read": {"processors": 0, "pace_s": 0.0, "most_rows": 20}})

        def limited() -> bool:
            numbers.send(200)
            queries[0].processAllAvailable()
            return [batch["rows"] for batch in batches(record, "read")[-5:]] == [20] * 5

        assert until(limited)
        queries[1].processAllAvailable()
    finally:
        for query in queries:
            query.stop()
    assert sorted(row["id"] for row in attached.table("read").collect()) == list(range(numbers.sent))
    found = {row["k"]: row["n"] for row in attached.table("counted").collect()}
    assert found == Counter(number % 5 for number in range(numbers.sent))


def _read_in(record: Path, query: str) -> int:
    """Tasks that read the source in the last batch that was noted."""
    noted = batches(record, query)
    return (
        max((stage["tasks"] for stage in noted[-1]["stages"] if not stage["behind_shuffle"]), default=0) if noted else 0
    )
