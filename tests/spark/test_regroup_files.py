"""What a start makes of a change of key groups that a crash has interrupted; only files, no Spark."""

from __future__ import annotations

import shutil
import time
import uuid
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sluicegate.domain.births import Births
from sluicegate.runlog.layout import Layout
from sluicegate.runlog.plan_file import OperatorPlan, PlanInForce
from sluicegate.spark.edges.folder import FolderEdge
from sluicegate.spark.edges.offsets import last_committed, state_partitions
from sluicegate.spark.edges.spoiled import EdgeSpoiled
from sluicegate.spark.pipeline import regroup
from sluicegate.spark.pipeline.graph import Node, RunningGraph
from sluicegate.spark.pipeline.regroup import BEGUN, VERIFIED, Hands, Regroup, Regrouping, settle_regroup
from sluicegate.spark.pipeline.verify import verify
from sluicegate.spark.repartition import copied, copy_of, put_back, undo_interrupted

HANDS = Hands(lambda name: True, lambda name: None, lambda name: None, lambda: False)
NODE = Node("count", ("rows",), ("count",), True, 2, True, None)


def batch(checkpoint: Path, number: int, partitions: int) -> None:
    """A batch as Spark's logs have it."""
    for folder in ("offsets", "commits", "state"):
        (checkpoint / folder).mkdir(parents=True, exist_ok=True)
    conf = f'{{"batchTimestampMs":0,"conf":{{"spark.sql.shuffle.partitions":"{partitions}"}}}}'
    (checkpoint / "offsets" / str(number)).write_text(f'v1\n{conf}\n{{"edge": "rows", "next": {number + 1}}}\n')
    (checkpoint / "commits" / str(number)).write_text('v1\n{"nextBatchWatermarkMs":0}\n')


def begun(folder: Path) -> tuple[Layout, FolderEdge]:
    """Two batches of two key groups, and what they published."""
    layout = Layout(folder)
    edge = FolderEdge(layout.edge("count"))
    edge.create('{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}')
    for number in range(2):
        batch(layout.checkpoint("count"), number, 2)
        edge.publish(number, (), Births(), time.time())
    return layout, edge


def regrouping_in(layout: Layout) -> Regrouping:
    """Of the operator "count" alone, without Spark."""
    writer: Any = SimpleNamespace(checkpoint=layout.checkpoint("count"))
    return Regrouping(cast(Any, None), layout, {"count": cast(Any, SimpleNamespace(writer=writer))}, HANDS)


def test_the_number_of_key_groups_is_what_the_offset_log_says(tmp_path: Path) -> None:
    layout, _ = begun(tmp_path)
    assert state_partitions(layout.checkpoint("count")) == 2
    assert state_partitions(layout.checkpoint("other")) is None


def test_a_half_rewritten_checkpoint_is_put_back(tmp_path: Path) -> None:
    layout, edge = begun(tmp_path)
    checkpoint = layout.checkpoint("count")
    copied(checkpoint, 1, lambda text: None)
    Regroup(BEGUN, 1, 2, 5).write(layout.regroup("count"))
    batch(checkpoint, 2, 5)
    (checkpoint / "commits" / "2").unlink()
    settle_regroup(layout, NODE.name, NODE.writes)
    assert (last_committed(checkpoint), state_partitions(checkpoint)) == (1, 2)
    assert not edge.has(2)
    assert sorted(path.name for path in checkpoint.parent.iterdir()) == ["checkpoint"]


def test_a_crash_before_the_copy_was_whole_leaves_the_checkpoint_alone(tmp_path: Path) -> None:
    layout, _ = begun(tmp_path)
    Regroup(BEGUN, 1, 2, 5).write(layout.regroup("count"))
    settle_regroup(layout, NODE.name, NODE.writes)
    assert state_partitions(layout.checkpoint("count")) == 2
    assert not layout.regroup("count").exists()


def test_a_crash_while_it_is_put_back_is_made_good(tmp_path: Path) -> None:
    layout, _ = begun(tmp_path)
    checkpoint = layout.checkpoint("count")
    copied(checkpoint, 1, lambda text: None)
    Regroup(BEGUN, 1, 2, 5).write(layout.regroup("count"))
    checkpoint.rename(checkpoint.with_name("checkpoint.aside"))
    settle_regroup(layout, NODE.name, NODE.writes)
    assert last_committed(checkpoint) == 1


def test_a_crash_just_after_the_copy_was_put_back_leaves_nothing_of_what_it_replaced(tmp_path: Path) -> None:
    layout, _ = begun(tmp_path)
    checkpoint = layout.checkpoint("count")
    Regroup(BEGUN, 1, 2, 5).write(layout.regroup("count"))
    shutil.copytree(checkpoint, checkpoint.with_name("checkpoint.aside"))
    (checkpoint / "sluicegate-repartition.json").write_text('{"batch": 1, "partitions": 5}')
    settle_regroup(layout, NODE.name, NODE.writes)
    assert [path.name for path in checkpoint.parent.iterdir()] == ["checkpoint"]
    assert not (checkpoint / "sluicegate-repartition.json").exists()


def test_a_repartition_by_hand_that_was_killed_just_after_the_copy_was_put_back_is_cleared_up(tmp_path: Path) -> None:
    layout, _ = begun(tmp_path)
    checkpoint = layout.checkpoint("count")
    shutil.copytree(checkpoint, checkpoint.with_name("checkpoint.aside"))
    (checkpoint / "sluicegate-repartition.json").write_text('{"batch": 1, "partitions": 5}')
    assert undo_interrupted(checkpoint)
    assert [path.name for path in checkpoint.parent.iterdir()] == ["checkpoint"]
    assert not undo_interrupted(checkpoint)
    assert last_committed(checkpoint) == 1


def test_verified_state_goes_on_with_an_empty_manifest_in_place_of_sparks_own_batch(tmp_path: Path) -> None:
    layout, edge = begun(tmp_path)
    checkpoint = layout.checkpoint("count")
    copied(checkpoint, 1, lambda text: None)
    batch(checkpoint, 2, 5)
    Regroup(VERIFIED, 1, 2, 5).write(layout.regroup("count"))
    for _ in range(2):  # a second crash in between does no harm
        settle_regroup(layout, NODE.name, NODE.writes)
    manifest = edge.manifest(2)
    assert manifest is not None
    assert not manifest.matters
    assert (last_committed(checkpoint), state_partitions(checkpoint)) == (2, 5)
    assert not copy_of(checkpoint, 1).exists()


def test_a_crash_while_verified_state_is_put_back_leaves_the_number_of_the_next_batch_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the next batch finds a manifest of its number, takes itself for published, and its rows are lost."""
    layout, edge = begun(tmp_path)
    checkpoint = layout.checkpoint("count")
    copied(checkpoint, 1, lambda text: None)
    batch(checkpoint, 2, 5)
    change = Regroup(VERIFIED, 1, 2, 5)
    change.write(layout.regroup("count"))
    regrouping = regrouping_in(layout)

    def dies(point: str) -> None:
        raise SystemExit(point)

    monkeypatch.setattr(regroup, "fault_point", dies)
    with pytest.raises(SystemExit, match="regroup-put-back"):
        regrouping._put_back("count", change)
    settle_regroup(layout, NODE.name, NODE.writes)
    assert (last_committed(checkpoint), state_partitions(checkpoint)) == (1, 2)
    assert not edge.has(2)
    assert not layout.regroup("count").exists()


def described(folder: Path, partitions: int) -> Layout:
    """Two batches of two key groups, then one of Spark's with ``partitions``, with all that ``verify`` needs."""
    layout, _ = begun(folder)
    checkpoint = layout.checkpoint("count")
    (checkpoint / "metadata").write_text(f'{{"id":"{uuid.uuid4()}"}}')
    rows = FolderEdge(layout.edge("rows"))
    rows.create(FolderEdge(layout.edge("count")).schema_json)
    for number in range(3):
        rows.publish(number, (), Births(), time.time())
    layout.description.write_text(RunningGraph("shrunk", ("rows",), (NODE,), ("count",)).to_json())
    versions(checkpoint, 2, 2)
    copied(checkpoint, 1, lambda text: None)
    batch(checkpoint, 2, partitions)
    versions(checkpoint, 3, partitions)
    return layout


def versions(checkpoint: Path, version: int, partitions: int) -> None:
    for partition in range(partitions):
        store = checkpoint / "state" / "0" / str(partition)
        store.mkdir(parents=True, exist_ok=True)
        (store / f"{version}.zip").write_text("state")


@pytest.mark.parametrize("stage", [BEGUN, VERIFIED])
def test_a_folder_whose_driver_was_killed_while_key_groups_changed_is_sound(tmp_path: Path, stage: str) -> None:
    """The next start finishes or undoes the change; so does a repair."""
    layout = described(tmp_path, 5)
    if stage == BEGUN:
        (layout.checkpoint("count") / "commits" / "2").write_text("half")
    Regroup(stage, 1, 2, 5).write(layout.regroup("count"))
    assert verify(tmp_path).faults == ()
    found = verify(tmp_path, repair=True)
    assert (found.faults, len(found.repaired)) == ((), 1)
    assert not layout.regroup("count").exists()
    assert state_partitions(layout.checkpoint("count")) == (5 if stage == VERIFIED else 2)
    assert FolderEdge(layout.edge("count")).has(2) == (stage == VERIFIED)


def test_partitions_that_there_are_no_longer_need_no_state(tmp_path: Path) -> None:
    layout = described(tmp_path, 1)
    FolderEdge(layout.edge("count")).publish(2, (), Births(), time.time())
    assert verify(tmp_path).faults == ()
    (layout.checkpoint("count") / "state" / "0" / "0" / "3.zip").unlink()
    assert "has no state of batch 2" in verify(tmp_path).faults[0]


@pytest.mark.parametrize("changed", ["", "{", "[]", "5", '{"stage": "begun"}', "12 for 1"])
def test_a_spoiled_record_of_a_change_is_refused_in_one_line_and_nothing_is_touched(
    tmp_path: Path, changed: str
) -> None:
    layout = described(tmp_path, 5)
    path = layout.regroup("count")
    Regroup(BEGUN, 1, 2, 5).write(path)
    path.write_text(path.read_text().replace('"batch": 1', '"batch": 12') if " for " in changed else changed)
    with pytest.raises(EdgeSpoiled, match=r"^operator 'count': \S*regroup.json [^\n]+$"):
        settle_regroup(layout, NODE.name, NODE.writes)
    found = verify(tmp_path, repair=True)
    assert "regroup.json" in found.faults[0]
    assert found.repaired == ()
    assert copy_of(layout.checkpoint("count"), 1).exists()


def test_a_copy_shares_its_files_and_is_not_touched_by_what_replaces_them(tmp_path: Path) -> None:
    layout, _ = begun(tmp_path)
    checkpoint = layout.checkpoint("count")
    copy = copied(checkpoint, 1, lambda text: None)
    before = (copy / "commits" / "1").read_text()
    fresh = checkpoint / "commits" / ".1.tmp"
    fresh.write_text("another")
    fresh.rename(checkpoint / "commits" / "1")  # as Spark replaces a file
    assert (copy / "commits" / "1").read_text() == before
    put_back(checkpoint, copy)
    assert (checkpoint / "commits" / "1").read_text() == before


def test_plans_of_before_ask_for_no_key_groups() -> None:
    plan = PlanInForce(1, {"count": OperatorPlan(2, key_groups=16)})
    assert PlanInForce.from_json(plan.to_json()).of("count").key_groups == 16
    assert PlanInForce.from_json(plan.to_json().replace(', "key_groups": 16', "")).of("count").key_groups == 0


def test_files_recorded_for_a_batch_that_is_planned_anew_are_not_published_again(tmp_path: Path) -> None:
    """A split failed between record and manifests: the restored query plans that number with other rows."""
    layout, _ = begun(tmp_path)
    checkpoint = layout.checkpoint("count")
    copied(checkpoint, 1, lambda text: None)
    batch(checkpoint, 2, 5)
    records = checkpoint.parent / "commits"
    records.mkdir()
    for number in (1, 3):
        (records / f"{number}.json").write_text("{}")
    change = Regroup(VERIFIED, 1, 2, 5)
    change.write(layout.regroup("count"))
    regrouping_in(layout)._put_back("count", change)
    assert [path.name for path in records.iterdir()] == ["1.json"]


def test_a_checkpoint_that_could_not_be_restored_is_restored_before_the_query_starts_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout, _ = begun(tmp_path)
    checkpoint = layout.checkpoint("count")
    copied(checkpoint, 1, lambda text: None)
    batch(checkpoint, 2, 5)
    change = Regroup(VERIFIED, 1, 2, 5)
    regrouping = regrouping_in(layout)

    def fails(checkpoint: Path, copy: Path) -> None:
        raise OSError("input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(regroup, "put_back", fails)
        with pytest.raises(OSError, match="input/output"):
            regrouping._put_back("count", change)
    regrouping.settle("count")
    assert (last_committed(checkpoint), state_partitions(checkpoint)) == (1, 2)
    assert not layout.regroup("count").exists()
