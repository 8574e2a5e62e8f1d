from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest
from pyspark.sql import DataFrame, SparkSession

from sluicegate.errors import BadInput
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.elements import Stream


def same(rows: DataFrame) -> DataFrame:
    return rows


def spark_stream(spark: SparkSession) -> DataFrame:
    return spark.readStream.format("rate").load()


def made() -> tuple[Pipeline, Stream, Stream]:
    pipeline = Pipeline("p")
    lines = pipeline.source("lines", "text string")
    return pipeline, lines, pipeline.operator("split", same, lines)


REFUSED: dict[str, Callable[[Pipeline, Stream, Stream], object]] = {
    "source name '7up'": lambda p, lines, split: p.source("7up", "a long"),
    "operator name 'a.b'": lambda p, lines, split: p.operator("a.b", same, lines),
    "operator name 'sink' means the outside world": lambda p, lines, split: p.operator("sink", same, lines),
    "source name 'source' means the outside world": lambda p, lines, split: p.source("source", stream=spark_stream),
    "source 'lines': that name is taken": lambda p, lines, split: p.source("lines", "a long"),
    "operator 'lines': that name is taken": lambda p, lines, split: p.operator("lines", same, lines),
    "loop 'split': that name is taken": lambda p, lines, split: p.loop("split", "a long"),
    "source 'x': give either a schema": lambda p, lines, split: p.source("x"),
    "source 'y': give either a schema": lambda p, lines, split: p.source("y", "a long", spark_stream),
    "operator 'count' reads nothing": lambda p, lines, split: p.operator("count", same),
    "operator 'count' reads 'nope', which is not there": lambda p, lines, split: p.operator(
        "count", same, Stream(("nope",))
    ),
    "operator 'count': key_groups is 0": lambda p, lines, split: p.operator("count", same, lines, key_groups=0),
    "operator 'count': mode is 'upsert'": lambda p, lines, split: p.operator("count", same, lines, mode="upsert"),
    "operator 'count': 'same' is no function": lambda p, lines, split: p.operator("count", cast("Any", "same"), lines),
    "operator 'count': name its outputs, each once": lambda p, lines, split: p.splitter(
        "count", same, lines, outputs=["a", "a"]
    ),
    "operator 'route': name its outputs": lambda p, lines, split: p.splitter("route", same, lines, outputs=[]),
    "output name 'a/b'": lambda p, lines, split: p.splitter("count", same, lines, outputs=["a/b"]),
    "operator 'count' has no output 'c'": lambda p, lines, split: p.splitter("count", same, lines, outputs=["a"])["c"],
    "'split' is no loop": lambda p, lines, split: p.close(split, lines),
    "close takes one stream": lambda p, lines, split: p.close(p.loop("back", "text string"), split | lines),
    "sink name ''": lambda p, lines, split: p.sink("", split),
    "sink 'out' takes one stream": lambda p, lines, split: p.sink("out", split | lines),
    "sink 'out' keeps 'nope'": lambda p, lines, split: p.sink("out", Stream(("nope",))),
    "sink 'out' keeps 'back'": lambda p, lines, split: p.sink("out", p.loop("back", "text string")),
    "sink 'out' writes source 'lines'": lambda p, lines, split: p.sink("out", lines, lambda rows, number: None),
    "nothing reads 'split'": lambda p, lines, split: p.check(),
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_cannot_run_is_refused_with_what_to_do(text: str) -> None:
    with pytest.raises(BadInput) as refused:
        REFUSED[text](*made())
    assert str(refused.value).startswith(text)
    assert "\n" not in str(refused.value)


def test_a_sink_there_twice_is_refused() -> None:
    pipeline, _, split = made()
    pipeline.sink("out", split)
    with pytest.raises(BadInput, match="sink 'out' is there twice"):
        pipeline.sink("out", split)


def test_a_pipeline_needs_a_source_and_an_operator() -> None:
    with pytest.raises(BadInput, match="has no source"):
        Pipeline("p").check()
    pipeline = Pipeline("p")
    pipeline.source("lines", "text string")
    with pytest.raises(BadInput, match="has no operator"):
        pipeline.check()


def test_a_source_or_a_loop_that_nobody_reads_is_refused() -> None:
    pipeline, _, split = made()
    pipeline.sink("out", split)
    pipeline.source("more", "text string")
    with pytest.raises(BadInput, match="nothing reads 'more'"):
        pipeline.check()
    pipeline, _, split = made()
    pipeline.close(pipeline.loop("back", "text string"), split)
    with pytest.raises(BadInput, match="nothing reads 'back'"):
        pipeline.check()


def test_a_loop_is_closed_once_and_by_what_an_operator_writes() -> None:
    pipeline = Pipeline("p")
    lines, back = pipeline.source("lines", "text string"), pipeline.loop("back", "text string")
    step = pipeline.operator("step", same, lines | back)
    with pytest.raises(BadInput, match="loop 'back' is never closed"):
        pipeline.check()
    pipeline.close(back, lines)
    with pytest.raises(BadInput, match="which no operator writes"):
        pipeline.check()
    with pytest.raises(BadInput, match="closed twice"):
        pipeline.close(back, step)


def test_a_stateful_operator_updates_and_a_stateless_one_appends_unless_told() -> None:
    pipeline, lines, _ = made()
    pipeline.operator("count", same, lines, stateful=True)
    pipeline.operator("window", same, lines, stateful=True, mode="append")
    assert [pipeline.steps[name].mode for name in ("split", "count", "window")] == ["append", "update", "append"]


def test_a_pipeline_that_can_run_passes() -> None:
    pipeline, lines, split = made()
    routed = pipeline.splitter("route", same, lines | split, outputs=["a", "b"])
    pipeline.sink("kept", routed["a"])
    pipeline.sink("raw", lines)
    pipeline.sink("end", pipeline.operator("end", same, routed["b"]), lambda rows, number: None)
    pipeline.check()


def begun() -> tuple[Pipeline, Stream]:
    pipeline = Pipeline("p")
    return pipeline, pipeline.source("s", "id long")


def test_a_loop_that_no_source_feeds_is_refused() -> None:
    pipeline, lines = begun()
    pipeline.sink("out", pipeline.operator("a", same, lines))
    back = pipeline.loop("back", "id long")
    pipeline.close(back, pipeline.operator("round", same, back))
    with pytest.raises(BadInput, match="no row of a source reaches operator 'round'"):
        pipeline.check()


@pytest.mark.parametrize("limit", ["5s", [1]])
def test_a_retry_limit_that_is_no_number_is_refused(limit: Any) -> None:
    pipeline, lines = begun()
    with pytest.raises(BadInput, match="retry_for_s is"):
        pipeline.operator("a", same, lines, retry_for_s=limit)


@pytest.mark.parametrize("outputs", [None, [["x"]], 3])
def test_outputs_that_are_no_names_are_refused(outputs: Any) -> None:
    pipeline, lines = begun()
    with pytest.raises(BadInput, match=r"name its outputs|output name"):
        pipeline.splitter("a", same, lines, outputs=outputs)


def test_kafka_settings_that_are_no_mapping_are_refused() -> None:
    pipeline, lines = begun()
    with pytest.raises(BadInput, match="settings is"):
        pipeline.edge(pipeline.operator("a", same, lines), "host:9092", settings=cast(Any, ["x"]))


def test_an_operator_that_is_refused_is_not_left_behind() -> None:
    pipeline, lines = begun()
    with pytest.raises(BadInput, match="dead_letters needs a function of rows"):
        pipeline.operator("a", same, lines, dead_letters=True)
    assert not pipeline.steps
    pipeline.operator("a", same, lines)
