from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import LongType, StructField, StructType, TimestampType

from headgate.spark.edges.births import Births
from headgate.spark.edges.folder import FolderEdge
from headgate.spark.edges.manifest import DataFile
from headgate.spark.edges.shares import Slice
from headgate.spark.edges.source import EdgeReader, Offset, SlicePartition
from headgate.spark.plan_file import OperatorPlan, Plan, PlanFile

SCHEMA = StructType([StructField("id", LongType()), StructField("at", TimestampType())])


def offset(number: int) -> Offset:
    return {"edge": "edge", "next": number}


class Bench:
    """An edge, a plan and one reader of the edge that never waits."""

    def __init__(self, folder: Path) -> None:
        self.edge = FolderEdge(folder / "edge")
        self.edge.create(SCHEMA.json())
        self.hold = folder / "hold"
        self.plan = PlanFile(folder / "plan.json")
        options = {"edge": self.edge.folder, "plan": folder / "plan.json", "hold": self.hold}
        self.reader = EdgeReader(SCHEMA, {k: str(v) for k, v in options.items()} | {"operator": "op", "wait_s": "0"})

    def publish(self, *rows: int) -> None:
        for count in rows:
            newest = self.edge.newest()
            number = newest.number + 1 if newest else 0
            self.edge.publish(number, [DataFile(f"data/{number}/x.parquet", count)], Births(), 1.0)

    def latest(self, start: int = 0) -> object:
        return self.reader.latestOffset(offset(start), ReadAllAvailable())["next"]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_batch_takes_all_that_is_there(bench: Bench) -> None:
    assert bench.latest() == 0
    bench.publish(5, 5, 5)
    assert bench.latest() == 3
    assert bench.latest(3) == 3


def test_a_batch_takes_no_more_rows_than_the_plan_allows_but_one_manifest_at_least(bench: Bench) -> None:
    bench.plan.write(Plan(1, {"op": OperatorPlan(most_rows=7)}))
    bench.publish(5, 5, 100, 1)
    assert [bench.latest(start) for start in range(4)] == [1, 2, 3, 4]


def test_no_batch_starts_while_the_pipeline_is_held(bench: Bench) -> None:
    bench.publish(5)
    bench.hold.write_text("stopping")
    assert bench.latest() == 0
    bench.hold.unlink()
    assert bench.latest() == 1


def test_no_batch_starts_before_the_pace_is_due(bench: Bench) -> None:
    bench.publish(5)
    assert bench.latest() == 1
    bench.plan.write(Plan(1, {"op": OperatorPlan(pace_s=1e6)}))
    bench.publish(5)
    assert bench.latest(1) == 1
    bench.plan.write(Plan(2, {"op": OperatorPlan(pace_s=0.0)}))
    assert bench.latest(1) == 2


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


def test_k_and_shares_are_those_of_the_plan_when_the_batch_is_planned(bench: Bench) -> None:
    bench.publish(60, 40)
    begin, end = offset(0), offset(2)
    for k, shares, expected in ((1, (), [100]), (4, (), [25] * 4), (2, (4.0, 1.0), [80, 20])):
        bench.plan.write(Plan(k, {"op": OperatorPlan(k, shares=shares)}))
        parts = bench.reader.partitions(begin, end)
        assert [sum(s.end - s.first for s in part.slices) for part in parts] == expected


@settings(max_examples=30)
@given(st.integers(1, 400), st.integers(1, 150), st.data())
def test_a_slice_reads_its_rows_and_no_others_however_the_file_is_grouped(
    tmp_path_factory: pytest.TempPathFactory, rows: int, group: int, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("slice")
    ids = pa.array(range(rows), pa.int64())
    table = pa.table({"at": ids.cast(pa.timestamp("us", "UTC")), "more": ids, "id": ids})
    pq.write_table(table, folder / "x.parquet", row_group_size=group)
    first = data.draw(st.integers(0, rows))
    end = data.draw(st.integers(first, rows))
    batches = Bench(folder).reader.read(SlicePartition((Slice(str(folder / "x.parquet"), first, end),)))
    found = [(batch.schema.names, batch.column(0).to_pylist()) for batch in batches]
    assert all(names == ["id", "at"] for names, _ in found)
    assert [value for _, values in found for value in values] == list(range(first, end))
