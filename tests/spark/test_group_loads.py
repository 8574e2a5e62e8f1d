from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sluicegate.control.groups import owners_for
from sluicegate.runlog.plan_file import PlanFile
from sluicegate.spark.act.group_loads import GroupLoads
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.runtime import start

GROUPS = 8
NEIGHBOURS = (0, 0, 0, 0, 1, 1, 1, 1)


@given(st.lists(st.floats(0, 10), min_size=1, max_size=12), st.integers(1, 14))
def test_every_task_has_a_group_and_every_group_one_task(loads_s: list[float], k: int) -> None:
    owners, _ = owners_for((), len(loads_s), k, loads_s)
    assert len(owners) == len(loads_s)
    assert set(owners) == set(range(min(k, len(loads_s))))


def test_groups_that_are_alike_stay_with_their_neighbours() -> None:
    assert owners_for((), GROUPS, 2, [1.0, 1.1, 0.9, 1.0, 1.0, 1.0, 1.1, 0.9])[0] == NEIGHBOURS
    assert GroupLoads(GROUPS).owners(2) == NEIGHBOURS


def test_owners_stay_as_they_are_while_they_are_good_enough() -> None:
    spread, why = owners_for(NEIGHBOURS, GROUPS, 2, [4.0, 4.0, 4.0, 4.0, 1.0, 1.0, 1.0, 1.0])
    assert spread != NEIGHBOURS
    assert why == "the busiest of 2 tasks takes 10 s a batch instead of 16 s"
    assert owners_for(spread, GROUPS, 2, [4.2, 3.8, 4.0, 4.0, 1.0, 1.1, 0.9, 1.0]) == (spread, "")


def test_without_a_plan_for_so_many_tasks_the_last_owners_move_least() -> None:
    groups = GroupLoads(GROUPS)
    planned = groups.owners(2, (0, 1, 0, 1, 0, 1, 0, 1))
    three = groups.owners(3, planned)
    assert sum(old != new for old, new in zip(planned, three, strict=True)) == 2


def test_another_number_of_tasks_moves_the_fewest_groups() -> None:
    """Of 32 groups from 7 to 8 tasks 4 must move; ranges anew would move 19."""
    groups = GroupLoads(32)
    seven = groups.owners(7)
    eight = groups.owners(8)
    assert sum(old != new for old, new in zip(seven, eight, strict=True)) == 4
    assert sorted(eight.count(task) for task in range(8)) == [4] * 8


def count(rows: DataFrame) -> DataFrame:
    return rows.groupBy("key").count()


def test_heavy_neighbours_are_spread_over_tasks_and_the_counts_stay_exact(spark: SparkSession, tmp_path: Path) -> None:
    """All rows fall into the first half of the groups, which Spark's own rule gives to one task."""
    first_half = F.pmod(F.hash("id"), F.lit(GROUPS)) < GROUPS // 2
    keys = [row["id"] for row in spark.range(60_000).where(first_half).collect()]
    pipeline = Pipeline("skewed")
    counts = pipeline.operator("count", count, pipeline.source("rows", "key long"), stateful=True, key_groups=GROUPS)
    pipeline.sink("counts", counts)
    rounds = 0
    with start(pipeline, spark, tmp_path / "run", {"count": 2}) as running:
        groups, feed = running._prepared["count"].writer.groups, running.feed("rows")
        assert groups is not None
        spread: tuple[int, ...] = NEIGHBOURS
        while rounds < 30 and spread == NEIGHBOURS:
            feed.append(pa.table({"key": pa.array(keys, pa.int64())}))
            running.drain()
            rounds += 1
            # as the loop decides it, from what the batch log tells
            told = next((r.group_s for r in reversed(running.records("count")) if r.group_s), ())
            spread, _ = owners_for(spread, GROUPS, 2, told)
        plan = PlanFile(running.layout.plan)
        plan.change({"count": replace(plan.read().of("count"), groups=spread)})
        feed.append(pa.table({"key": pa.array(keys, pa.int64())}))
        running.drain()
        assert groups.owners(2) == spread
        largest, times = F.max("count").alias("n"), F.count("*").alias("times")
        found = running.read("count").groupBy("key").agg(largest, times).collect()
    assert spread != NEIGHBOURS
    assert set(spread[: GROUPS // 2]) == {0, 1}
    assert {(row["key"], row["n"], row["times"]) for row in found} == {(key, rounds + 1, rounds + 1) for key in keys}
