"""State of stopped queries in another number of partitions: equal, restarted exactly, and put back."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sluicegate.cli.app import run
from sluicegate.errors import BadInput
from sluicegate.runlog.layout import Layout
from sluicegate.spark import repartition as stateful

ROWS = 240


def _deduplicated_counts(rows: DataFrame) -> DataFrame:
    return rows.dropDuplicates(["id"]).groupBy("key").count()


def _counts(rows: DataFrame) -> DataFrame:
    return rows.groupBy("key").count()


def _feed(spark: SparkSession, folder: Path, first: int) -> None:
    rows = spark.range(first, first + ROWS).select("id", (F.col("id") % 17).alias("key"))
    rows.coalesce(1).write.mode("append").parquet(str(folder / "in"))


def _run(spark: SparkSession, folder: Path, kind: str, partitions: int = 6) -> None:
    """All files there are, each key's last count kept; the setting counts at the first start only."""
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
    build = _counts if kind == "counts" else _deduplicated_counts
    try:
        rows = spark.readStream.schema("id long, key long").parquet(str(folder / "in"))
        query = (
            build(rows)
            .writeStream.outputMode("update")
            .foreachBatch(lambda batch, number: batch.write.parquet(str(folder / f"out/{number}"), mode="overwrite"))
            .option("checkpointLocation", str(folder / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before or "200")


def _latest(spark: SparkSession, folder: Path) -> dict[int, int]:
    latest: dict[int, int] = {}
    for path in sorted((folder / "out").iterdir(), key=lambda path: int(path.name)):
        latest |= {row["key"]: row["count"] for row in spark.read.parquet(str(path)).collect()}
    return latest


def _expected(rows: int) -> dict[int, int]:
    return dict(Counter(number % 17 for number in range(rows)))


def _stopped(spark: SparkSession, folder: Path, kind: str) -> Path:
    """A query that ran once and stopped; its checkpoint."""
    _feed(spark, folder, 0)
    _run(spark, folder, kind)
    return folder / "checkpoint"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["counts", "deduplicated"])
def test_state_lies_in_other_partitions_and_the_query_goes_on_exactly(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    checkpoint = _stopped(spark, tmp_path, kind)
    done = stateful.repartition(spark, checkpoint, 3)
    assert (done.partitions_before, stateful.stopped(checkpoint).partitions) == (6, 3)
    assert done.rows >= 17
    _feed(spark, tmp_path, ROWS)
    _run(spark, tmp_path, kind, partitions=3)
    assert _latest(spark, tmp_path) == _expected(2 * ROWS)
    with pytest.raises(BadInput, match="has run since"):
        stateful.undo(checkpoint)


@pytest.mark.slow
def test_undo_puts_back_what_was_there_and_the_query_goes_on_exactly(spark: SparkSession, tmp_path: Path) -> None:
    checkpoint = _stopped(spark, tmp_path, "counts")
    stateful.repartition(spark, checkpoint, 2)
    stateful.undo(checkpoint)
    assert stateful.stopped(checkpoint).partitions == 6
    _feed(spark, tmp_path, ROWS)
    _run(spark, tmp_path, "counts")
    assert _latest(spark, tmp_path) == _expected(2 * ROWS)


@pytest.mark.slow
@pytest.mark.parametrize("killed", ["before the commit", "while it was put back"])
def test_a_repartition_that_was_killed_is_undone_and_the_query_goes_on_exactly(
    spark: SparkSession, tmp_path: Path, killed: str
) -> None:
    checkpoint = _stopped(spark, tmp_path, "counts")
    assert not stateful.undo_interrupted(checkpoint)
    done = stateful.repartition(spark, checkpoint, 2)
    assert not stateful.undo_interrupted(checkpoint), "it was not interrupted"
    if killed == "before the commit":
        last = max(int(path.name) for path in (checkpoint / "commits").iterdir() if path.name.isdigit())
        (checkpoint / "commits" / str(last)).unlink()
    else:
        checkpoint.rename(checkpoint.with_name("checkpoint.aside"))
    assert stateful.undo_interrupted(checkpoint)
    assert stateful.stopped(checkpoint).partitions == 6
    stateful.put_back(checkpoint, done.copy)  # a second time changes nothing
    assert sorted(path.name for path in tmp_path.iterdir() if "checkpoint" in path.name) == ["checkpoint"]
    assert not list(checkpoint.glob("sluicegate*"))
    _feed(spark, tmp_path, ROWS)
    _run(spark, tmp_path, "counts")
    assert _latest(spark, tmp_path) == _expected(2 * ROWS)


@pytest.mark.slow
def test_what_cannot_be_repartitioned_is_refused_and_left_alone(spark: SparkSession, tmp_path: Path) -> None:
    checkpoint = _stopped(spark, tmp_path, "counts")
    with pytest.raises(BadInput, match="has 6 partitions already"):
        stateful.repartition(spark, checkpoint, 6)
    with pytest.raises(BadInput, match="at least 1"):
        stateful.repartition(spark, checkpoint, 0)
    with pytest.raises(BadInput, match="no checkpoint"):
        stateful.repartition(spark, tmp_path, 3)
    for part in (path for path in (checkpoint / "state/0/1").rglob("*") if path.is_file()):
        part.write_bytes(b"")
    held = sorted(str(path) for path in checkpoint.rglob("*"))
    with pytest.raises(BadInput, match="cannot be read"):
        stateful.repartition(spark, checkpoint, 3)
    assert sorted(str(path) for path in checkpoint.rglob("*")) == held
    last = max(int(path.name) for path in (checkpoint / "commits").iterdir() if path.name.isdigit())
    (checkpoint / "commits" / str(last)).unlink()
    with pytest.raises(BadInput, match="is not committed"):
        stateful.repartition(spark, checkpoint, 3)
    assert not list(tmp_path.glob("checkpoint.before-*"))


def test_state_that_spark_cannot_repartition_is_refused_before_anything_is_copied(
    spark: SparkSession, tmp_path: Path
) -> None:
    key = "spark.sql.streaming.stateStore.providerClass"
    before = spark.conf.get(key)
    spark.conf.set(key, "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider")
    try:
        _feed(spark, tmp_path, 0)
        _run(spark, tmp_path, "counts")
    finally:
        spark.conf.set(key, before or "")
    with pytest.raises(BadInput, match=r"kept by HDFSBackedStateStoreProvider.*RocksDB's state only"):
        stateful.repartition(spark, tmp_path / "checkpoint", 3)
    assert [path.name for path in tmp_path.glob("checkpoint*")] == ["checkpoint"]


def test_the_checkpoint_of_a_pipeline_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Spark's extra batch would have no manifest on its edges."""
    checkpoint = Layout(tmp_path).checkpoint("count")
    checkpoint.mkdir(parents=True)
    Layout(tmp_path).edge("words").mkdir(parents=True)
    assert run(["repartition", str(checkpoint), "4"]) == 2
    assert "belongs to a pipeline" in capsys.readouterr().err
