"""One pipeline with every kind of operator, its k moved all the time; each test is one claim about that run.

Then what it refuses when it is to go on from where it stood.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from tests.spark.small_pipelines import refused, same, simple

from sluicegate.errors import BadInput
from sluicegate.runlog.layout import Layout
from sluicegate.spark.cluster.waiting import wait_until
from sluicegate.spark.edges.folder import FolderEdge
from sluicegate.spark.elastic import elastic
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.elements import Step, Stream
from sluicegate.spark.pipeline.runtime import Running, start

pytestmark = pytest.mark.slow

SCHEMA = "id long, key long, at timestamp"
ROWS, KEYS, WINDOW_S = 240, 7, 20
START_S = 1_000_000
KEY_GROUPS = 3
STATEFUL = ("joined", "first", "windows", "totals")
STATELESS = ("both", "route")


def total_processor() -> StatefulProcessor:
    """How many rows a key has had, told with every batch. Made here, so that it reaches Spark's workers by value."""

    def init(self: Any, handle: StatefulProcessorHandle) -> None:
        self.total = handle.getValueState("total", "n long")

    def take(self: Any, key: tuple[int], parts: Iterator[pd.DataFrame], timers: Any) -> Iterator[pd.DataFrame]:
        before = self.total.get()
        total = (before[0] if before is not None else 0) + sum(len(part) for part in parts)
        self.total.update((total,))
        yield pd.DataFrame({"key": [key[0]], "n": [total]})

    methods = {"init": init, "handleInputRows": take, "close": lambda self: None}
    processor = type("Total", (StatefulProcessor,), methods)()
    assert isinstance(processor, StatefulProcessor)
    return processor


def joined(left: DataFrame, right: DataFrame) -> DataFrame:
    late = right.withWatermark("at", "1 hour").select(F.col("id").alias("other"), F.col("at").alias("other_at"))
    near = F.expr("id = other AND other_at BETWEEN at - INTERVAL 1 MINUTE AND at + INTERVAL 1 MINUTE")
    return left.withWatermark("at", "1 hour").join(late, near).select("id", "other")


def windows(rows: DataFrame) -> DataFrame:
    counted = rows.withWatermark("at", "0 seconds").groupBy(F.window("at", f"{WINDOW_S} seconds")).count()
    return counted.select(F.unix_timestamp("window.start").alias("start"), "count")


def totals(rows: DataFrame) -> DataFrame:
    return rows.groupBy("key").transformWithStateInPandas(total_processor(), "key long, n long", "Update", "None")


def routed(rows: DataFrame) -> DataFrame:
    return rows.withColumn("output", F.when(F.col("id") % 2 == 0, "even").otherwise("odd"))


def build(written: list[tuple[int, int]] | None = None) -> Pipeline:
    pipeline = Pipeline("every_kind")
    left, right = pipeline.source("left", SCHEMA), pipeline.source("right", SCHEMA)
    both = pipeline.operator("both", lambda rows: rows.select("id", "key", "at"), left | right, fuse=False)
    state: dict[str, Any] = {"stateful": True, "key_groups": KEY_GROUPS}
    pipeline.sink("joined", pipeline.operator("joined", joined, left, right, mode="append", **state))
    pipeline.sink(
        "first", pipeline.operator("first", lambda r: r.dropDuplicates(["key"]), left, mode="append", **state)
    )
    pipeline.sink("windows", pipeline.operator("windows", windows, left, mode="append", **state))
    pipeline.sink("totals", pipeline.operator("totals", totals, both, **state))
    route = pipeline.splitter("route", routed, both, outputs=["even", "odd"])

    def write(rows: DataFrame, number: int) -> None:
        if written is not None:
            written.append((number, rows.count()))

    pipeline.sink("even", route["even"], write)
    pipeline.sink("odd", route["odd"])
    return pipeline


def rows(first: int, number: int) -> pa.Table:
    ids = range(first, first + number)
    at = pa.array([(START_S + i) * 1_000_000 for i in ids], pa.int64()).cast(pa.timestamp("us", "UTC"))
    return pa.table({"id": pa.array(ids, pa.int64()), "key": pa.array([i % KEYS for i in ids], pa.int64()), "at": at})


@dataclass(slots=True)
class Story:
    folder: Path
    found: dict[str, list[Any]]
    written: list[tuple[int, int]]
    ks: dict[str, set[int]]
    second_start: str = ""
    restarts: list[str] = field(default_factory=list)
    left_on: dict[str, int] = field(default_factory=dict)
    nodes: dict[str, Any] = field(default_factory=dict)


@pytest.fixture(scope="module")
def story(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Story:
    """Half of the rows, a stop, the other half."""
    folder, steps, written = tmp_path_factory.mktemp("story") / "run", count(), list[tuple[int, int]]()
    told = Story(folder, {}, written, {})
    with start(build(written), spark, folder) as running:
        feed_half(running, steps, 0)
        with pytest.raises(BadInput) as refused:
            start(build(), spark, folder)
        told.second_start = str(refused.value)
    told.restarts += running.restarts
    with start(build(written), spark, folder) as running:
        feed_half(running, steps, ROWS // 2)
        told.found = {name: running.read(name).collect() for name in running.graph.kept}
        told.ks = {
            node.name: {record.processors for record in running.records(node.name)} for node in running.graph.nodes
        }
        streams = ("left", "right", "both")

        def left_on() -> dict[str, int]:
            return {stream: len(list((told.folder / "edges" / stream / "data").iterdir())) for stream in streams}

        wait_until(lambda: max(left_on().values()) <= 1, 60.0, 0.2)
        told.left_on = left_on()
        told.nodes = json.loads(Layout(told.folder).nodes.read_text())
    told.restarts += running.restarts
    return told


def feed_half(running: Running, steps: Iterator[int], first: int) -> None:
    left, right = running.feed("left"), running.feed("right")
    for at in range(first, first + ROWS // 2, ROWS // 4):
        step = next(steps)
        running.set_processors({name: (step + i) % KEY_GROUPS + 1 for i, name in enumerate(STATEFUL)})
        running.set_processors({name: (step + i) % 4 + 1 for i, name in enumerate(STATELESS)})
        for feed in (left, right):
            feed.append(rows(at, ROWS // 4))
        running.drain()


def test_k_did_move(story: Story) -> None:
    assert all(len(ks) > 1 for ks in story.ks.values()), story.ks


def test_a_union_carries_both_streams_once(story: Story) -> None:
    routed_ids = [row["id"] for name in ("route.even", "route.odd") for row in story.found[name]]
    assert Counter(routed_ids) == dict.fromkeys(range(ROWS), 2)


def test_a_splitter_sends_every_row_to_the_output_it_names(story: Story) -> None:
    assert {row["id"] % 2 for row in story.found["route.even"]} == {0}
    assert {row["id"] % 2 for row in story.found["route.odd"]} == {1}


def test_a_join_of_two_streams_finds_every_pair_once(story: Story) -> None:
    assert sorted((row["id"], row["other"]) for row in story.found["joined"]) == [(i, i) for i in range(ROWS)]


def test_deduplication_lets_every_key_through_once(story: Story) -> None:
    assert sorted((row["key"], row["id"]) for row in story.found["first"]) == [(key, key) for key in range(KEYS)]


def test_every_window_that_the_watermark_has_passed_comes_out_once_and_right(story: Story) -> None:
    whole = [(START_S + s, WINDOW_S) for s in range(0, ROWS, WINDOW_S) if s + WINDOW_S <= ROWS - 1]
    assert sorted((row["start"], row["count"]) for row in story.found["windows"]) == whole


def test_state_of_ones_own_counts_every_row_once(story: Story) -> None:
    last: Counter[int] = Counter()
    for row in story.found["totals"]:
        last[row["key"]] = max(last[row["key"]], row["n"])
    assert last == Counter({key: 2 * len(range(key, ROWS, KEYS)) for key in range(KEYS)})


def test_a_sink_that_writes_is_called_with_every_row_and_a_number_that_is_never_used_twice(story: Story) -> None:
    assert sum(rows for _, rows in story.written) == ROWS
    assert len({number for number, _ in story.written}) == len(story.written)


def test_what_every_reader_has_taken_is_deleted_and_what_is_kept_stays(story: Story) -> None:
    assert all(left <= 1 for left in story.left_on.values()), story.left_on
    assert len(FolderEdge(Layout(story.folder).edge("totals")).numbers()) > 1


def test_the_one_node_tells_what_it_takes_of_the_machine(story: Story) -> None:
    (node,) = story.nodes["nodes"]
    assert 0 < node["cpu"] <= 1.5  # a little above 1 where the clocks of two readings differ
    assert 0 < node["memory"] < 1
    assert 0 <= node["io"] <= 1


def test_a_second_start_in_a_folder_in_use_is_refused(story: Story) -> None:
    assert story.second_start.startswith("a pipeline runs in ")


def test_nothing_had_to_be_tried_again_but_for_a_slow_start(story: Story) -> None:
    assert [text for text in story.restarts if "connect" not in text and "SOCKET" not in text] == []


@pytest.fixture
def copy(story: Story, tmp_path: Path) -> Path:
    shutil.copytree(story.folder, tmp_path / "copy")
    return tmp_path / "copy"


def test_the_folder_of_another_pipeline_is_refused(spark: SparkSession, copy: Path) -> None:
    assert "belongs to pipeline 'every_kind', not 'simple'" in refused(spark, simple(same), copy)


def test_a_changed_graph_is_refused(spark: SparkSession, copy: Path) -> None:
    changed = build()
    changed.sink("more", changed.operator("more", same, changed.source("extra", "id long")))
    assert "the operators more are joined otherwise" in refused(spark, changed, copy)


def test_changed_sinks_are_refused_as_what_they_hold_would_not_be_whole(spark: SparkSession, copy: Path) -> None:
    changed = build()
    changed.sink("all", Stream(("both",)))
    assert "the sinks of both changed" in refused(spark, changed, copy)


def test_a_deleted_checkpoint_is_refused_as_rows_would_come_twice(spark: SparkSession, copy: Path) -> None:
    shutil.rmtree(copy / "operators" / "joined" / "checkpoint")
    assert "operator 'joined' has read 'left' up to manifest 0" in refused(spark, build(), copy)


def test_a_deleted_source_edge_is_refused_as_new_rows_would_never_be_read(spark: SparkSession, copy: Path) -> None:
    shutil.rmtree(copy / "edges" / "left")
    told = refused(spark, build(), copy)
    assert told.startswith("edge 'left': manifest ")
    assert "is missing, and operator 'both' has read it: restore" in told


def test_a_deleted_output_is_refused(spark: SparkSession, copy: Path) -> None:
    shutil.rmtree(copy / "edges" / "joined")
    told = refused(spark, build(), copy)
    assert told.startswith("edge 'joined': manifest ")
    assert "is missing, and operator 'joined' has committed its batch: restore" in told


def test_a_changed_schema_is_refused(spark: SparkSession, copy: Path) -> None:
    changed = build()
    changed.steps["first"] = build_step(changed, "first", lambda r: r.dropDuplicates(["key"]).select("id"))
    assert "edge 'first' holds id long, key long, at timestamp, but is now to carry id long" in refused(
        spark, changed, copy
    )


def build_step(pipeline: Pipeline, name: str, function: Callable[[DataFrame], DataFrame]) -> Step:
    return replace(pipeline.steps[name], function=function)


def test_more_processors_than_key_groups_or_none_at_all_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    told = refused(spark, build(), tmp_path, processors={"joined": KEY_GROUPS + 1})
    assert told == "processors of 'joined' is 4: give at least 1 and at most its 3 key groups"
    assert refused(spark, build(), tmp_path, processors={"both": 0}).startswith("processors of 'both' is 0")
    assert refused(spark, build(), tmp_path, processors={"nope": 1}).startswith("processors for 'nope'")


@pytest.mark.parametrize("given", [{"retry_for_s": -1.0}, {"when_stopped": "shout"}])
def test_elastic_checks_all_arguments_at_the_call(tmp_path: Path, given: dict[str, Any]) -> None:
    pipeline = Pipeline("p")
    pipeline.sink("out", pipeline.operator("a", same, pipeline.source("s", "id long")))
    with pytest.raises(BadInput, match=next(iter(given))):
        elastic(pipeline, object.__new__(SparkSession), tmp_path, budget=1, **given)
