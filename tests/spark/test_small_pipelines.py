"""Pipelines of one or two operators: how they fail, what they refuse, and that they go on with nothing lost."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.spark.small_pipelines import ids_of, numbers, refused, same, simple

from sluicegate import elastic
from sluicegate.errors import BadInput
from sluicegate.runlog.layout import Layout
from sluicegate.runlog.plan_file import PlanFile
from sluicegate.spark.cluster.waiting import wait_until
from sluicegate.spark.edges.folder import FolderEdge
from sluicegate.spark.edges.kept import read_stream
from sluicegate.spark.edges.offsets import last_batch
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.failures import OperatorFailed
from sluicegate.spark.pipeline.runtime import Running, start
from sluicegate.spark.supervisor import ControllerFailed

pytestmark = pytest.mark.slow


def test_code_that_cannot_be_built_is_told_in_one_line(spark: SparkSession, tmp_path: Path) -> None:
    told = refused(spark, simple(lambda frame: frame.select("nope")), tmp_path / "a")
    assert told.startswith("operator 'work' cannot be built: AnalysisException: [UNRESOLVED_COLUMN")
    undeclared = simple(lambda frame: frame.groupBy("id").count())
    told = refused(spark, undeclared, tmp_path / "b")
    assert told.startswith("operator 'work' does not start: [STREAMING_OUTPUT")
    assert told.endswith("an operator that keeps state is declared with stateful=True")


def test_a_first_start_that_is_refused_leaves_the_folder_to_the_mended_pipeline(
    spark: SparkSession, tmp_path: Path
) -> None:
    """With its operator declared as stateful the graph is another one, with other rows the columns are."""
    theirs = tmp_path / "run" / "edges" / "theirs"
    theirs.mkdir(parents=True)
    refused(spark, simple(lambda frame: frame.groupBy("id").count()), tmp_path / "run")
    refused(spark, simple(lambda frame: frame.groupBy().count()), tmp_path / "run")
    mended = simple(lambda frame: frame.groupBy("id").count(), stateful=True, key_groups=2)
    with start(mended, spark, tmp_path / "run") as running:
        running.feed("lines").append(numbers(3))
        running.drain()
        assert running.read("work").count() == 3
    told = refused(spark, simple(lambda frame: frame.groupBy("id").count()), tmp_path / "run")
    assert "joined otherwise" in told
    assert theirs.is_dir()
    with start(mended, spark, tmp_path / "run") as running:
        assert running.read("work").count() == 3


def test_a_poison_row_stops_its_operator_and_mended_code_goes_on_with_that_very_batch_also_where_the_folder_was_moved(
    spark: SparkSession, tmp_path: Path
) -> None:
    class Poison(Exception):
        pass

    def check(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if 13 in batch.column(0).to_pylist():
                raise Poison("row 13\nof this batch")
            yield batch

    folder = tmp_path / "run[1]{a} b"
    checked = simple(lambda frame: frame.mapInArrow(check, "id long"), retry_for_s=1.0)
    with start(checked, spark, folder) as running:
        feed = running.feed("lines")
        feed.append(numbers(10))
        running.drain()
        feed.append(numbers(10, 10))
        feed.append(numbers(10, 20))
        with pytest.raises(OperatorFailed) as failed:
            running.drain()
    # the batch takes what is there: one of the two manifests, or both
    said = r"operator 'work' failed at batch 1: Poison: row 13 \(its rows: edge 'lines', manifests? 1( to 2)?\)"
    assert re.match(said + "; nothing is lost: fix", str(failed.value))
    (told,) = [text for text in running.restarts if "connect" not in text]
    assert re.fullmatch(r"work: batch 1 failed \(Poison: row 13\) \d times in \d+ s, stopped", told)
    assert ids_of(read_stream(spark, folder, "work")) == list(range(10))
    moved = folder.rename(tmp_path / "moved")
    with start(simple(same), spark, moved) as running:
        running.feed("lines").append(numbers(10, 30))
        running.drain()
        assert ids_of(running.read("work")) == list(range(40))
    homes = {path.name for path in (moved / "edges" / "work" / "data").iterdir()}
    assert len(homes) == len(FolderEdge(Layout(moved).edge("work")).numbers()), "what failed is removed"


def test_a_stream_of_sparks_own_is_read_once_across_a_stop(spark: SparkSession, tmp_path: Path) -> None:
    def pipeline() -> Pipeline:
        made = Pipeline("ticks")
        ticks = made.source(
            "ticks", stream=lambda s: s.readStream.format("rate-micro-batch").option("rowsPerBatch", 50).load()
        )
        made.sink("out", made.operator("keep", lambda frame: frame.selectExpr("value AS id"), ticks))
        return made

    def found() -> list[int]:
        return ids_of(read_stream(spark, tmp_path, "keep"))

    def reaches(rows: int) -> bool:
        return wait_until(lambda: len(found()) >= rows, 120.0, 0.2)

    with start(pipeline(), spark, tmp_path):
        assert reaches(100)
    first = len(found())
    with start(pipeline(), spark, tmp_path):
        assert reaches(first + 100)
    assert found() == list(range(len(found())))


def test_what_others_feed_after_the_end_waits_for_the_next_start(spark: SparkSession, tmp_path: Path) -> None:
    with start(simple(same), spark, tmp_path) as running:
        feed = running.feed("lines")
        feed.append(numbers(10))
        running.drain()
        running.admit_no_more()
        feed.append(numbers(10, 10))
        running.drain(120.0)
        assert ids_of(running.read("work")) == list(range(10))
    with start(simple(same), spark, tmp_path) as running:
        running.drain()
        assert ids_of(running.read("work")) == list(range(20))


def test_streams_of_sparks_own_keep_the_pace_and_can_be_held(spark: SparkSession, tmp_path: Path) -> None:
    made = Pipeline("ticks")
    ticks = made.source(
        "ticks", stream=lambda s: s.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
    )
    made.sink("out", made.operator("keep", lambda frame: frame.selectExpr("value AS id"), ticks))
    with start(made, spark, tmp_path) as running:
        running.set_paces({"ticks+keep": 1.0})
        assert wait_until(lambda: len(running.records("ticks+keep")) >= 6, 120.0, 0.2)
        begun = [record.started_s for record in running.records("ticks+keep")][2:]
        # a batch that begins late, by up to one pace, lets the next one begin as much earlier
        assert begun[-1] - begun[0] >= 0.85 * (len(begun) - 2)
        running.admit_no_more()
        running.drain(120.0)
        held = last_batch(running.layout.checkpoint("ticks+keep"))
        time.sleep(2.0)
        assert last_batch(running.layout.checkpoint("ticks+keep")) == held
        assert running.rows_read == {"ticks": len(ids_of(running.read("keep")))}


def test_streams_of_sparks_own_wait_while_their_readers_are_too_far_behind(spark: SparkSession, tmp_path: Path) -> None:
    made = Pipeline("ticks")
    ticks = made.source(
        "ticks", stream=lambda s: s.readStream.format("rate-micro-batch").option("rowsPerBatch", 50).load()
    )
    made.sink("out", made.operator("keep", lambda frame: frame.selectExpr("value AS id"), ticks, fuse=False))
    with start(made, spark, tmp_path) as running:
        plan = PlanFile(running.layout.plan)
        plan.change({"ticks": replace(plan.read().of("ticks"), most_behind=200)})
        assert wait_until(lambda: running.rows_read["ticks"] > 0, 60.0, 0.05)
        running.set_paces({"keep": 600.0})
        assert wait_until(lambda: _stands_still(running), 60.0, 0.1)
        taken = running.rows_read["ticks"]
        running.set_paces({"keep": 0.0})
        assert wait_until(lambda: running.rows_read["ticks"] > taken, 60.0, 0.1), "and go on once they are not"


def _stands_still(running: Running) -> bool:
    before = running.rows_read["ticks"]
    time.sleep(2.0)
    return running.rows_read["ticks"] == before > 200


def test_batches_without_rows_leave_nothing_on_the_disk(spark: SparkSession, tmp_path: Path) -> None:
    pipeline = Pipeline("sieve")
    lines = pipeline.source("lines", "id long")
    none = pipeline.operator("none", lambda frame: frame.where("id < 0"), lines)
    pipeline.sink("none", none)
    split = pipeline.splitter(
        "split", lambda frame: frame.where("id < 0").withColumn("output", F.lit("a")), lines, outputs=["a", "b"]
    )
    pipeline.sink("a", split["a"])
    pipeline.sink("b", split["b"])
    with start(pipeline, spark, tmp_path) as running:
        feed = running.feed("lines")
        for at in range(3):
            feed.append(numbers(5, at))
            running.drain()
        assert [list((tmp_path / "edges" / s / "data").iterdir()) for s in running.graph.kept] == [[], [], []]
        assert running.read("split.a").count() == 0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"slo": "mean3s"}, "write NAME=VALUE, for example mean=2s"),
        ({"slo": "mean=3s", "policy": "magic"}, "unknown policy 'magic'"),
        ({"budget": 0}, "at least 1 processor"),
        ({"folder": ""}, "give the path of a folder"),
        ({"folder": None}, "give the path of a folder"),
    ],
)
def test_a_promise_or_policy_that_cannot_be_read_is_refused_before_anything_starts(
    spark: SparkSession, tmp_path: Path, given: dict[str, Any], said: str
) -> None:
    pipeline = Pipeline("given")
    pipeline.sink("out", pipeline.operator("same", lambda f: f, pipeline.source("lines", "id long")))
    with pytest.raises(BadInput, match=said):
        elastic(pipeline, spark, **{"folder": tmp_path / "home", **given})
    assert not (tmp_path / "home").exists()


def test_a_controller_that_cannot_start_is_raised_where_the_pipeline_is_watched(
    spark: SparkSession, tmp_path: Path
) -> None:
    pipeline = Pipeline("watched")
    pipeline.sink("out", pipeline.operator("same", lambda f: f, pipeline.source("lines", "id long")))
    with elastic(pipeline, spark, tmp_path, slo="mean=3s") as running:
        running.layout.description.write_text("{")  # before the controller's process has come so far
        with pytest.raises(ControllerFailed, match="the controller does not start"):
            running.wait(120.0)
        for watch in (running.check, running.drain):
            with pytest.raises(ControllerFailed, match="json is torn or overwritten"):
                watch()


def test_rows_for_an_output_that_nobody_named_stop_the_operator(spark: SparkSession, tmp_path: Path) -> None:
    pipeline = Pipeline("lost")
    split = pipeline.splitter(
        "split", lambda f: f.withColumn("output", F.lit("c")), pipeline.source("lines", "id long"), outputs=["a"]
    )
    pipeline.sink("a", split["a"])
    with start(pipeline, spark, tmp_path) as running:
        running.feed("lines").append(numbers(5))
        with pytest.raises(OperatorFailed, match="operator 'split' sent rows to 'c': it names a"):
            running.drain()


def test_a_loop_brings_every_row_round_as_often_as_it_asks(spark: SparkSession, tmp_path: Path) -> None:
    pipeline = Pipeline("rounds")
    lines, back = pipeline.source("lines", "id long, left long"), pipeline.loop("back", "id long, left long")

    def step(frame: DataFrame) -> DataFrame:
        less = frame.withColumn("left", F.col("left") - 1)
        return less.withColumn("output", F.when(F.col("left") > 0, "again").otherwise("done"))

    turn = pipeline.splitter("turn", step, lines | back, outputs=["again", "done"])
    pipeline.close(back, turn["again"])
    pipeline.sink("done", turn["done"])
    with start(pipeline, spark, tmp_path) as running:
        ids = pa.array(range(30), pa.int64())
        running.feed("lines").append(
            pa.table({"id": ids, "left": pa.array([i % 4 + 1 for i in range(30)], pa.int64())})
        )
        running.drain()
        assert ids_of(running.read("turn.done")) == list(range(30))
