from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from sluicegate.domain.births import Births
from sluicegate.runlog.plan_file import OperatorPlan, PlanFile, PlanInForce
from sluicegate.spark.edges import planner
from sluicegate.spark.edges.folder import FolderEdge
from sluicegate.spark.edges.manifest import DataFile
from sluicegate.spark.edges.offsets import offset_of
from sluicegate.spark.edges.pace import Pace
from sluicegate.spark.edges.planner import EdgePlanner

SCHEMA = '{"type": "struct", "fields": [{"name": "id", "type": "long"}]}'


def offset(number: int) -> str:
    return offset_of("edge", number, "op")


class Bench:
    """An edge, a plan and one reader of the edge that never waits."""

    def __init__(self, folder: Path) -> None:
        self.edge = FolderEdge(folder / "edge")
        self.edge.create(SCHEMA)
        self.hold = folder / "hold"
        self.plan = PlanFile(folder / "plan.json")
        self.planner = EdgePlanner("one", self.edge, "op", self.plan, self.hold, wait_s=0.0)

    def publish(self, *rows: int) -> None:
        for count in rows:
            newest = self.edge.newest()
            number = newest.number + 1 if newest else 0
            path = self.edge.folder / "data" / f"{number}.parquet"
            path.touch()
            self.edge.publish(number, [DataFile(f"data/{path.name}", count)], Births(), 1.0)

    def latest(self, start: int = 0) -> object:
        return json.loads(self.planner.latest(offset(start)))["next"]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_batch_takes_all_that_is_there(bench: Bench) -> None:
    assert bench.latest() == 0
    bench.publish(5, 5, 5)
    assert bench.latest() == 3
    assert bench.latest(3) == 3


def test_a_batch_takes_no_more_rows_than_the_plan_allows_but_one_manifest_at_least(bench: Bench) -> None:
    bench.plan.write(PlanInForce(1, {"op": OperatorPlan(most_rows=7)}))
    bench.publish(5, 5, 100, 1)
    assert [bench.latest(start) for start in range(4)] == [1, 2, 3, 4]


def test_a_batch_takes_no_more_files_than_memory_has_readers_for(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """An hour of small tables in one batch ended a driver of 600 MB: Spark keeps a reader of each file."""
    monkeypatch.setattr(planner, "_MOST_FILES", 3)
    bench.publish(*[1] * 5, 0)
    bench.edge.publish(6, [DataFile(f"data/6-{n}.parquet", 1) for n in range(8)], Births(), 1.0)
    assert [bench.latest(start) for start in (0, 3, 6)] == [3, 6, 7]


def test_a_manifest_without_rows_starts_a_batch_only_where_the_watermark_advances(bench: Bench) -> None:
    for number, watermark_ms in enumerate([None, 7_000, 7_000, 6_000]):
        bench.edge.publish(number, [], Births(), 1.0, watermark_ms=watermark_ms)
    assert bench.latest() == 4
    assert bench.latest(2) == 2, "what follows the advance has nothing for a batch"
    bench.edge.publish(4, [], Births(), 1.0, watermark_ms=8_000)
    assert bench.latest(2) == 5


def test_no_batch_starts_while_the_pipeline_is_held(bench: Bench) -> None:
    bench.publish(5)
    bench.hold.write_text("stopping")
    assert bench.latest() == 0
    bench.hold.unlink()
    assert bench.latest() == 1


def test_no_batch_starts_before_the_pace_is_due(bench: Bench) -> None:
    bench.publish(5)
    assert bench.latest() == 1
    bench.plan.write(PlanInForce(1, {"op": OperatorPlan(pace_s=1e6)}))
    bench.publish(5)
    assert bench.latest(1) == 1
    bench.plan.write(PlanInForce(2, {"op": OperatorPlan(pace_s=0.0)}))
    assert bench.latest(1) == 2


def test_a_batch_that_was_late_lets_the_next_be_earlier(bench: Bench) -> None:
    bench.plan.write(PlanInForce(1, {"op": OperatorPlan(pace_s=30.0)}))
    bench.publish(5)
    assert bench.latest() == 1, "the first is later than any pace"
    bench.publish(5)
    assert bench.latest(1) == 2
    bench.publish(5)
    assert bench.latest(2) == 2, "but only one"


class Both:
    """Two readers of an operator, asked as Spark asks them."""

    def __init__(self, folder: Path, pace_s: float) -> None:
        pace = Pace()
        self.benches = [Bench(folder / name) for name in ("left", "right")]
        for bench, name in zip(self.benches, ("left", "right"), strict=True):
            bench.planner = replace(bench.planner, name=name, pace=pace, _at=0)
        self.go_at(pace_s)

    def go_at(self, pace_s: float) -> None:
        for bench in self.benches:
            bench.plan.write(PlanInForce(1, {"op": OperatorPlan(pace_s=pace_s)}))

    def publish(self, *rows: int) -> None:
        for bench, count in zip(self.benches, rows, strict=True):
            bench.publish(count)

    def latest(self, *starts: int) -> tuple[object, ...]:
        return tuple(bench.latest(start) for bench, start in zip(self.benches, starts, strict=True))


def test_a_batch_of_an_operator_that_reads_two_edges_takes_what_both_have(tmp_path: Path) -> None:
    both = Both(tmp_path, 1e6)
    for batch, told in enumerate(((1, 1), (2, 2), (2, 2))):
        both.publish(5, 5)
        assert both.latest(batch, batch) == told, "both count for the pace as one batch"


def test_a_pace_that_comes_due_between_two_readers_starts_no_batch_without_the_first(tmp_path: Path) -> None:
    both = Both(tmp_path, 1e6)
    left, right = both.benches
    for batch in range(2):
        both.publish(5, 5)
        both.latest(batch, batch)
    both.publish(5, 5)
    assert left.latest(2) == 2
    both.go_at(0.0)
    assert right.latest(2) == 2, "the first was asked too early, and has rows"
    assert both.latest(2, 2) == (3, 3)


def test_a_batch_starts_with_what_one_edge_has_if_the_other_has_nothing(tmp_path: Path) -> None:
    both = Both(tmp_path, 0.0)
    assert both.latest(0, 0) == (0, 0)
    both.benches[1].publish(5)
    assert both.latest(0, 0) == (0, 1)
    both.benches[0].publish(5)
    assert both.latest(0, 1) == (1, 1)


def test_rows_of_a_batch_that_spark_never_noted_are_offered_again(tmp_path: Path) -> None:
    both = Both(tmp_path, 0.0)
    both.benches[1].publish(5)
    assert both.latest(0, 0) == (0, 1)
    both.benches[0].publish(5)
    assert both.latest(0, 1) == (1, 1), "by now the second was looked at beyond its batch"
    assert [both.latest(1, 0) for _ in range(2)][-1] == (1, 1)


def test_manifests_without_rows_start_no_batch_and_go_with_the_next_rows(bench: Bench) -> None:
    bench.publish(0, 0, 0)
    assert bench.latest() == 0
    bench.publish(5)
    assert bench.latest() == 4


def test_many_manifests_without_rows_are_taken_so_that_they_can_be_deleted(bench: Bench) -> None:
    for number in range(200):
        bench.edge.manifest_path(number).write_text(
            f'{{"number": {number}, "rows_before": 0, "published_s": 1.0, "files": [], "born": []}}'
        )
    assert bench.latest() == 200


def test_a_reader_starts_at_the_first_manifest(bench: Bench) -> None:
    assert json.loads(bench.planner.latest("")) == json.loads(offset(0))


def test_k_is_that_of_the_plan_when_the_batch_is_planned(bench: Bench) -> None:
    bench.publish(50, 50, 50, 50)
    for k, expected in ((1, [200]), (4, [50] * 4), (2, [100] * 2)):
        bench.plan.write(PlanInForce(k, {"op": OperatorPlan(k)}))
        planned = json.loads(bench.planner.tasks(offset(0), offset(4)))
        assert [sum(take for *_, take, _ in task) for task in planned["tasks"]] == expected
        assert list(bench.planner.task_rows) == expected
        assert planned["whole"]
        assert bench.planner.processors == k
