"""Several partitions in one task: memory that Spark frees when a task ends, and writers that know partitions by number.

The queries fit the memory easily with one task a partition, and did not with all partitions in one task.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from tests.attach.attached import attached_session, batches, until, write_plan

pytestmark = pytest.mark.slow

PARTITIONS, ROWS, KEYS = 24, 8000, 2000
LONG = 30_000
"""Bytes of a row of the table: 60 MB in all, of which a partition has 2.5 MB."""


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("partitions") / "record"


@pytest.fixture(scope="module")
def spark(record: Path) -> Iterator[SparkSession]:
    session = attached_session(
        record,
        {
            "spark.testing.memory": str(2**30),  # less what Spark keeps for itself, times the fraction: 36 MB
            "spark.memory.fraction": "0.05",
            "spark.sql.shuffle.partitions": str(PARTITIONS),
            "spark.sql.adaptive.coalescePartitions.enabled": "false",
            "spark.sql.autoBroadcastJoinThreshold": "-1",
        },
        "local[2]",
    )
    yield session
    session.stop()


@pytest.fixture(scope="module")
def rows(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    folder = str(tmp_path_factory.mktemp("in"))
    table = spark.range(0, ROWS, 1, 1).selectExpr(f"concat('k', id % {KEYS}) AS k", "id AS v")
    table.write.mode("append").parquet(folder)
    return spark.readStream.schema("k string, v long").parquet(folder)


def ran(query: DataFrame, name: str, record: Path, folder: Path) -> list[list[object]]:
    """The rows of a query that ran with all partitions in one task."""
    write_plan(record, {name: {"processors": 1}})
    writer = query.writeStream.outputMode("update").format("memory").queryName(name).trigger(availableNow=True)
    assert writer.option("checkpointLocation", str(folder / name)).start().awaitTermination(180)
    assert until(lambda: len(batches(record, name)) > 0)
    assert {batch["tasks"] for batch in batches(record, name)} == {1}
    return [list(row) for row in query.sparkSession.table(name).collect()]


def test_rows_that_wait_for_python_are_freed_with_their_partition(
    spark: SparkSession, rows: DataFrame, record: Path, tmp_path: Path
) -> None:
    shout = F.udf(lambda text: text + "!", "string")
    counts = rows.groupBy("k").agg(F.count("*").alias("n")).select(shout("k"), "n")
    found = ran(counts, "shouted", record, tmp_path)
    assert sorted(found) == sorted([f"k{key}!", ROWS // KEYS] for key in range(KEYS))


def test_the_hash_table_of_a_join_is_freed_with_its_partition(
    spark: SparkSession, rows: DataFrame, record: Path, tmp_path: Path
) -> None:
    table = spark.range(0, KEYS, 1, 2).selectExpr("concat('k', id) AS k", f"repeat('x', {LONG}) AS text")
    joined = rows.join(table.hint("shuffle_hash"), "k").selectExpr("k", "length(text) AS n")
    found = ran(joined, "joined", record, tmp_path)
    assert Counter(str(key) for key, n in found if n == LONG) == {f"k{key}": ROWS // KEYS for key in range(KEYS)}


def test_a_foreach_writer_that_leaves_out_what_it_has_had_loses_no_row_of_a_batch_that_is_tried_again(
    rows: DataFrame, record: Path, tmp_path: Path
) -> None:
    """The task of the second try that has the number of a written partition holds other rows, if k has changed."""
    out = tmp_path / "out"
    out.mkdir()

    class Once:
        """As Spark's guide has it: a partition of a batch that was written before is not written again."""

        def __init__(self, down: bool) -> None:
            self.down = down

        def open(self, partition_id: int, epoch_id: int) -> bool:
            self.partition, self.file = partition_id, out / f"{epoch_id}-{partition_id}"
            self.rows = list[tuple[str, int]]()
            return not self.file.exists()

        def process(self, row: Row) -> None:
            self.rows.append((row["k"], row["n"]))

        def close(self, error: Exception | None) -> None:
            if self.down and self.partition == 4:
                raise ConnectionError("the user's own service is down")
            if error is None and not self.file.exists():
                self.file.write_text(json.dumps(self.rows))

    def started(down: bool, k: int) -> StreamingQuery:
        write_plan(record, {"foreach": {"processors": k}})
        writer = rows.groupBy("k").agg(F.count("*").alias("n")).writeStream.outputMode("update").foreach(Once(down))
        writer = writer.option("checkpointLocation", str(tmp_path / "foreach")).trigger(availableNow=True)
        return writer.queryName("foreach").start()

    with pytest.raises(StreamingQueryException, match="own service is down"):
        started(down=True, k=5).awaitTermination(180)
    assert len(list(out.iterdir())) > 1
    assert started(down=False, k=2).awaitTermination(180)
    (node,) = (one for one in json.loads((record / "pipeline.json").read_text())["nodes"] if one["name"] == "foreach")
    assert "it writes to foreach" in node["left"]
    written = [key for file in out.iterdir() for key, n in json.loads(file.read_text()) if n == ROWS // KEYS]
    assert sorted(written) == sorted(f"k{key}" for key in range(KEYS))
