"""Tasks moved at every batch, for every kind of query that there is: the rows are those of an independent answer."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from tests.attach import query_kinds
from tests.attach.attached import MOVES, attached_session, batches, move_every_batch, until
from tests.attach.query_kinds import BATCHES, KINDS, LEFT, RIGHT, Kind, Streams, write_input

pytestmark = pytest.mark.slow

HDFS_BACKED = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
NEWEST = {
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
    "spark.sql.streaming.offsetLog.formatVersion": "2",
    "spark.sql.streaming.stateStore.rowChecksum.enabled": "true",
    "spark.sql.streaming.stateStore.commitValidation.enabled": "true",
    "spark.sql.streaming.stateStore.unloadOnCommit": "true",
    "spark.sql.streaming.join.stateFormatVersion": "3",
    "spark.sql.streaming.sessionWindow.merge.sessions.in.local.partition": "true",
}
"""Checkpoints and state of the newest formats, and stores that are closed after each batch."""
NEWEST_KINDS = ("agg_update", "join_left_outer", "session_window", "dedup_agg_agg_dedup", "self_join")
HDFS_KINDS = ("agg_update", "dedup_then_agg", "join_then_agg", "join_left_outer", "agg_then_agg")
"""Every way in which operators with state follow each other; other files have applications on this store."""
AT_ONCE = 4
CONNECTED_LATE = "failed to connect back"
"""Spark's message for a kind with Python on the driver on a busy machine; such a query is started again."""
STARTS = 3


class Moved:
    """Kinds run to their end in one session, several at once, k moved at every batch."""

    def __init__(self, spark: SparkSession, base: Path, kinds: Sequence[Kind]) -> None:
        self.spark, self.base, self.record = spark, base, base / "record"
        self.rows: dict[str, list[Row]] = {}
        self.problems: dict[str, str] = {}
        write_input(base / "left", LEFT)
        write_input(base / "right", RIGHT)
        move_every_batch(self.record, [kind.name for kind in kinds])
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(self._run, [kind for kind in kinds if not kind.python_on_driver]))
        for kind in kinds:
            if kind.python_on_driver:
                self._run(kind)

    def _run(self, kind: Kind) -> None:
        for start in range(STARTS):
            try:
                self.rows[kind.name] = self._rows(kind, kind.name)
                return
            except Exception as problem:
                if CONNECTED_LATE in str(problem) and start + 1 < STARTS and self._starts_over(kind):
                    continue
                # the plan comes first and is long; the causes say what went wrong
                causes = [line.strip() for line in str(problem).splitlines() if "Exception" in line or "Error" in line]
                self.problems[kind.name] = "\n".join(causes[:20]) or str(problem)
                return

    def _starts_over(self, kind: Kind) -> bool:
        """Whether nothing was committed yet; a memory sink cannot go on from a checkpoint, so that is deleted."""
        checkpoint = self.base / "checkpoint" / kind.name
        if not kind.python_on_driver or any((checkpoint / "commits").glob("[0-9]*")):
            return False
        shutil.rmtree(checkpoint)
        return True

    def _rows(self, kind: Kind, name: str) -> list[Row]:
        out, collected = str(self.base / "out" / name), []
        writer = kind.build(Streams(self.spark, self.base)).writeStream.outputMode(kind.mode).queryName(name)
        writer = writer.option("checkpointLocation", str(self.base / "checkpoint" / name)).trigger(availableNow=True)
        if kind.sink == "memory":
            writer = writer.format("memory")
        elif kind.sink == "foreachBatch":
            writer = writer.foreachBatch(lambda rows, _: collected.extend(rows.collect()))
        elif kind.sink == "parquetEachBatch":

            def write(rows: DataFrame, batch: int) -> None:
                rows.write.mode("append").partitionBy("k").parquet(out)

            writer = writer.foreachBatch(write)
        elif kind.sink == "twoSinksEachBatch":

            def write_twice(rows: DataFrame, batch: int) -> None:
                rows.persist()
                by_sum = rows.groupBy("n").agg(F.count("*").alias("keys")).repartition(3)  # shuffles of its own
                assert sum(row["keys"] for row in by_sum.collect()) == rows.count()
                collected.extend(rows.collect())
                rows.write.mode("append").parquet(out)
                rows.unpersist()

            writer = writer.foreachBatch(write_twice)
        else:
            writer = writer.format("parquet").option("path", out)
            writer = writer.partitionBy(kind.sink.partition("/")[2]) if "/" in kind.sink else writer
        query = (writer if kind.ends else writer.trigger(processingTime="0 seconds")).start()
        if not kind.ends:
            taken = f"{len(LEFT)} rows in {name}"
            assert until(lambda: len(batches(self.record, name)) > BATCHES or not query.isActive, 240), taken
            query.stop()
            if query.exception() is not None:
                raise RuntimeError(str(query.exception()))
        elif not query.awaitTermination(240):
            query.stop()
            raise TimeoutError(f"{name} did not end")
        if kind.sink == "memory":
            return self.spark.table(name).collect()
        written = [] if kind.sink == "foreachBatch" else self.spark.read.parquet(out).collect()
        assert kind.sink != "twoSinksEachBatch" or sorted(written) == sorted(collected)
        return written or collected


def run_of(base: Path, kinds: Sequence[Kind], settings: Mapping[str, str] | None = None) -> Moved:
    """All kinds run, and their session stopped: another fixture of the module would get it, with its settings."""
    by_value: Any = cloudpickle.register_pickle_by_value
    by_value(query_kinds)  # Spark's Python workers cannot import the tests
    spark = attached_session(base / "record", settings)
    try:
        return Moved(spark, base, kinds)
    finally:
        spark.stop()


@pytest.fixture(scope="module")
def moved(tmp_path_factory: pytest.TempPathFactory) -> Moved:
    return run_of(tmp_path_factory.mktemp("kinds"), KINDS)


@pytest.fixture(scope="module")
def moved_on_hdfs(tmp_path_factory: pytest.TempPathFactory) -> Moved:
    store = {"spark.sql.streaming.stateStore.providerClass": HDFS_BACKED}
    return run_of(tmp_path_factory.mktemp("hdfs"), [k for k in KINDS if k.name in HDFS_KINDS], store)


@pytest.fixture(scope="module")
def moved_on_newest(tmp_path_factory: pytest.TempPathFactory) -> Moved:
    return run_of(tmp_path_factory.mktemp("newest"), [k for k in KINDS if k.name in NEWEST_KINDS], NEWEST)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_rows_are_exact_with_tasks_moved_at_every_batch(moved: Moved, kind: Kind) -> None:
    assert moved.problems.get(kind.name) is None
    assert kind.exact(moved.rows[kind.name])


@pytest.mark.long
@pytest.mark.parametrize("name", HDFS_KINDS)
def test_rows_are_exact_on_the_hdfs_backed_store_too(moved_on_hdfs: Moved, name: str) -> None:
    kind = next(kind for kind in KINDS if kind.name == name)
    assert moved_on_hdfs.problems.get(name) is None
    assert kind.exact(moved_on_hdfs.rows[name])


@pytest.mark.long
@pytest.mark.parametrize("name", NEWEST_KINDS)
def test_rows_are_exact_with_the_newest_formats_too(moved_on_newest: Moved, name: str) -> None:
    kind = next(kind for kind in KINDS if kind.name == name)
    assert moved_on_newest.problems.get(name) is None
    assert kind.exact(moved_on_newest.rows[name])


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.moves], ids=lambda kind: kind.name)
def test_tasks_really_moved(moved: Moved, kind: Kind) -> None:
    tasks = {batch["batch"]: batch["tasks"] for batch in batches(moved.record, kind.name)}
    if kind.name == "agg_ordered":  # the stage that sorts is left alone, so the widest stage is Spark's
        return
    assert len(tasks) >= 5
    wanted = {batch: MOVES[batch % len(MOVES)] for batch in tasks}
    if kind.sink == "twoSinksEachBatch":  # the function's own shuffles, the widest, have as many tasks as always
        ran = {one["batch"]: {stage["tasks"] for stage in one["stages"]} for one in batches(moved.record, kind.name)}
        assert {batch: counts for batch, counts in ran.items() if wanted[batch] not in counts} == {}
        return
    assert {batch: count for batch, count in tasks.items() if count != wanted[batch]} == {}
