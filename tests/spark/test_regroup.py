"""Another number of key groups for one operator of a running pipeline: exact, with a way back, and the others go on."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.spark.small_pipelines import ids_of, numbers, same

from sluicegate.errors import BadInput
from sluicegate.runlog.batch_log import Tail
from sluicegate.runlog.plan_file import PlanFile
from sluicegate.spark import repartition as stateful
from sluicegate.spark.cluster.waiting import wait_until
from sluicegate.spark.controller import Control
from sluicegate.spark.edges.feed import Feed
from sluicegate.spark.edges.offsets import last_committed, state_partitions
from sluicegate.spark.pipeline import regroup
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.regroup import Regroup
from sluicegate.spark.pipeline.runtime import Running, start
from sluicegate.spark.supervisor import Supervisor

pytestmark = pytest.mark.slow

LUMP, PATIENCE_S, SIDE = 40, 120.0, 1_000_000


def once(rows: DataFrame, poison: Path | None = None) -> DataFrame:
    """Fails, once, where the file ``poison`` is there."""

    def checked(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for part in parts:
            if poison is not None and poison.exists():
                poison.unlink()
                raise TypeError("poisoned")
            yield part

    return rows.dropDuplicates(["id"]).mapInArrow(checked, "id long")


def build(poison: Path | None = None) -> Pipeline:
    """Duplicates are removed by state, between two operators without; the last one reads another source too."""
    pipeline = Pipeline("regrouped")
    before = pipeline.operator("before", same, pipeline.source("rows", "id long"), fuse=False)
    only = pipeline.operator(
        "once", partial(once, poison=poison), before, stateful=True, key_groups=2, mode="append", fuse=False
    )
    pipeline.sink("out", pipeline.operator("after", same, only | pipeline.source("side", "id long"), fuse=False))
    return pipeline


def append(feed: Feed, fed: list[int]) -> None:
    """New rows, and the last ones once more: state has to know them, whichever group it is in by now."""
    first = len(fed)
    fed.extend(range(first, first + LUMP))
    feed.append(pa.table({"id": pa.array(fed[-2 * LUMP :], pa.int64())}))


def said(running: Running) -> list[str]:
    return [json.loads(line)["what"] for line in Tail(running.layout.fleet).lines()]


def batches(running: Running) -> dict[str, int]:
    return {node.name: last_committed(running.layout.checkpoint(node.name)) or 0 for node in running.graph.nodes}


def test_one_operator_is_repartitioned_while_the_others_go_on_and_every_row_comes_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fed, went_on = list[int](), list[bool]()
    with start(build(), spark, tmp_path / "run") as running:

        def repartition_once_the_others_went_on(*given: Any) -> None:
            since = batches(running)
            others = [name for name in since if name != "once"]
            went_on.append(wait_until(lambda: all(batches(running)[n] > since[n] for n in others), PATIENCE_S, 0.05))
            stateful.repartition(*given)

        monkeypatch.setattr(regroup, "repartition", repartition_once_the_others_went_on)
        rows, side = running.feed("rows"), running.feed("side")
        append(rows, fed)
        side.append(numbers(LUMP, SIDE))
        running.drain()
        with pytest.raises(BadInput, match=r"'once' is 5: give at least 1 and at most its 2 key groups"):
            running.set_processors({"once": 5})
        running.set_key_groups({"once": 5})
        until = time.monotonic() + PATIENCE_S
        while not any("2 -> 5" in line for line in said(running)) and time.monotonic() < until:
            append(rows, fed)
            side.append(numbers(LUMP, SIDE + side.rows))
            time.sleep(0.2)
        running.set_processors({"once": 5})
        append(rows, fed)
        running.drain()
        assert went_on == [True], "the others have committed batches while it was stopped"
        assert state_partitions(running.layout.checkpoint("once")) == 5
        assert running.records("once")[-1].processors == 5
        sides = list(range(SIDE, SIDE + side.rows))
        assert ids_of(running.read("after")) == [*fed, *sides]
        assert wait_until(lambda: not running.layout.regroup("once").exists(), 60.0, 0.1), "the way back is cleared"
        assert not list((running.layout.checkpoint("once").parent).glob("checkpoint.*"))
    assert running.restarts == []
    with start(build(), spark, tmp_path / "run") as running:
        assert running.graph.node("once").key_groups == 5, "a resumed pipeline keeps its key groups"
        append(running.feed("rows"), fed)
        running.drain()
        assert ids_of(running.read("after")) == [*fed, *sides]


def test_state_that_differs_is_put_back_and_the_operator_goes_on_as_before(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def differs(before: object, after: object) -> None:
        raise stateful.StateDiffers("one row is another")

    fed, poison = list[int](), tmp_path / "poison"
    with start(build(poison), spark, tmp_path / "run") as running, monkeypatch.context() as patch:
        rows = running.feed("rows")
        append(rows, fed)
        running.drain()
        patch.setattr(stateful, "_check", differs)
        running.set_key_groups({"once": 4})
        assert wait_until(lambda: any("stay at 2, 4 were asked for: one row is" in s for s in said(running)), 60, 0.1)
        append(rows, fed)
        running.drain()
        assert state_partitions(running.layout.checkpoint("once")) == 2
        assert ids_of(running.read("after")) == fed
        assert len(said(running)) == 1, "what failed is not tried again by itself"
        patch.undo()
        fail_after_the_change(running, fed, poison)
        crash_at_every_stage(spark, tmp_path, running, fed)


def fail_after_the_change(running: Running, fed: list[int], poison: Path) -> None:
    """The first batch with the new key groups fails: the old checkpoint is put back, and that batch runs on it."""
    running.set_key_groups({"once": 3})
    assert wait_until(lambda: "once" in running._regrouping.moving, 60.0, 0.01)
    poison.touch()
    append(running.feed("rows"), fed)
    assert wait_until(lambda: any("stay at 2, 3 were asked for: " in text for text in said(running)), 60.0, 0.1)
    running.drain()
    assert state_partitions(running.layout.checkpoint("once")) == 2
    assert ids_of(running.read("after")) == fed


def crash_at_every_stage(spark: SparkSession, tmp_path: Path, running: Running, fed: list[int]) -> None:
    """The driver dies while state is rewritten, and again once it was verified."""
    running.stop()
    layout = running.layout
    checkpoint, path = layout.checkpoint("once"), layout.regroup("once")
    batch = last_committed(checkpoint)
    assert batch is not None
    plan = PlanFile(layout.plan)
    plan.change({"once": replace(plan.read().of("once"), key_groups=0)})
    stateful.copied(checkpoint, batch, lambda text: None)
    Regroup(regroup.BEGUN, batch, 2, 6).write(path)
    shutil.rmtree(checkpoint / "state")
    with start(build(), spark, tmp_path / "run") as running:
        append(running.feed("rows"), fed)
        running.drain()
        assert ids_of(running.read("after")) == fed
    batch = last_committed(checkpoint)
    assert batch is not None
    stateful.repartition(spark, checkpoint, 6)
    Regroup(regroup.VERIFIED, batch, 2, 6).write(path)
    with start(build(), spark, tmp_path / "run") as running:
        append(running.feed("rows"), fed)
        running.drain()
        assert running.graph.node("once").key_groups == 6
        assert ids_of(running.read("after")) == fed
    assert not path.exists()


def test_an_operator_with_several_outputs_keeps_the_commit_record_of_its_last_batch_alone(
    spark: SparkSession, tmp_path: Path
) -> None:
    pipeline, fed = Pipeline("parted"), list[int]()
    parted = pipeline.splitter(
        "once",
        lambda rows: rows.dropDuplicates(["id"]).selectExpr("id", "if(id % 2 = 0, 'even', 'odd') as output"),
        pipeline.source("rows", "id long"),
        outputs=["even", "odd"],
        stateful=True,
        key_groups=2,
        mode="append",
    )
    for output in parted.names:
        pipeline.sink(output, parted[output])
    with start(pipeline, spark, tmp_path / "run") as running:
        rows, checkpoint = running.feed("rows"), running.layout.checkpoint("once")
        append(rows, fed)
        running.drain()
        running.set_key_groups({"once": 3})
        assert wait_until(lambda: any("2 -> 3" in text for text in said(running)), PATIENCE_S, 0.1)
        append(rows, fed)
        running.drain()
        assert ids_of(running.read("once.even")) == fed[::2]
        assert ids_of(running.read("once.odd")) == fed[1::2]
        records = [path.name for path in (checkpoint.parent / "commits").iterdir()]
        assert records == [f"{last_committed(checkpoint)}.json"]


def slowly_once(rows: DataFrame) -> DataFrame:
    """Each row that state lets through takes 4 ms, in the task that has its key group."""

    def wait(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for part in parts:
            time.sleep(0.004 * part.num_rows)
            yield part

    return rows.dropDuplicates(["id"]).mapInArrow(wait, "id long")


@pytest.mark.long
def test_the_loop_asks_for_more_key_groups_than_there_are_and_then_uses_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    pipeline = Pipeline("outgrown")
    rows = pipeline.source("rows", "id long")
    options = {"stateful": True, "key_groups": 1, "mode": "append"}
    pipeline.sink("out", pipeline.operator("once", slowly_once, rows, **options))  # type: ignore[arg-type]
    control = Control(slo=("mean=2s",), budget=4, interval_s=1.0, cooldown_s=2.0)
    with start(pipeline, spark, tmp_path / "run") as running, Supervisor(running.layout, control):
        feed, until = running.feed("rows"), time.monotonic() + PATIENCE_S
        while time.monotonic() < until and not any(r.processors > 1 for r in running.records("once")[-1:]):
            feed.append(numbers(100, feed.rows))
            time.sleep(0.25)
        running.drain(PATIENCE_S)
        decisions = [json.loads(line) for line in Tail(running.layout.decisions).lines()]
        done = [json.loads(line) for line in Tail(running.layout.fleet).lines()]
        assert ids_of(running.read("once")) == list(range(feed.rows))
        assert max(record.processors for record in running.records("once")) > 1
    changes = [
        (d["number"], c) for d in decisions for c in d["changes"] if c["what"].startswith("number of key groups")
    ]
    number, change = changes[0]
    assert change["have"] == "1"
    assert "tasks are wanted, 1 groups allow no more than 1" in change["reason"]
    assert done[0]["what"].startswith(f"key groups of once 1 -> {change['want']}: once stood still for ")
    assert done[0]["decision"] >= number
