from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame

from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.elements import Stream
from sluicegate.spark.pipeline.fusion import groups_of


def same(*rows: DataFrame) -> DataFrame:
    return rows[0]


def names(pipeline: Pipeline, fuse: bool = True) -> list[str]:
    return [group.name for group in groups_of(pipeline, fuse)]


def chain(**options: bool) -> Pipeline:
    pipeline = Pipeline("p")
    a = pipeline.operator("a", same, pipeline.source("s", "id long"))
    b = pipeline.operator("b", same, a, stateful=options.get("stateful", False), fuse=options.get("fuse", True))
    pipeline.sink("out", pipeline.operator("c", same, b))
    return pipeline


def test_stateless_neighbours_share_one_query() -> None:
    assert names(chain()) == ["a+b+c"]


def test_nothing_is_fused_where_that_is_not_wanted() -> None:
    assert names(chain(), fuse=False) == ["a", "b", "c"]
    assert names(chain(fuse=False)) == ["a", "b", "c"]


def test_a_stateful_operator_shares_a_query_with_what_comes_before_it_and_not_with_what_comes_after() -> None:
    assert names(chain(stateful=True)) == ["a+b", "c"]
    assert names(chain(stateful=True, fuse=False)) == ["a", "b", "c"]


def test_a_stream_that_is_read_twice_or_kept_stays_on_an_edge() -> None:
    pipeline = Pipeline("p")
    a = pipeline.operator("a", same, pipeline.source("s", "id long"))
    pipeline.sink("b", pipeline.operator("b", same, a))
    assert names(pipeline) == ["a+b"]
    pipeline.sink("c", pipeline.operator("c", same, a))
    assert names(pipeline) == ["a", "b", "c"]
    kept = chain()
    kept.sink("middle", Stream(("b",)))
    assert names(kept) == ["a+b", "c"]


def test_joins_unions_loops_and_outputs_are_edges() -> None:
    pipeline = Pipeline("p")
    a = pipeline.operator("a", same, pipeline.source("s", "id long"))
    b = pipeline.operator("b", same, pipeline.source("t", "id long"))
    back = pipeline.loop("back", "id long")
    joined = pipeline.operator("joined", same, a, b)
    union = pipeline.operator("union", same, joined | back)
    routed = pipeline.splitter("routed", same, union, outputs=["x", "y"])
    pipeline.close(back, pipeline.operator("round", same, routed["x"]))
    pipeline.sink("out", pipeline.operator("end", same, routed["y"]))
    assert names(pipeline) == ["a", "b", "joined", "union", "routed", "round", "end"]


def test_every_operator_is_in_exactly_one_group_and_every_group_says_why() -> None:
    for pipeline in (chain(), chain(stateful=True), chain(fuse=False)):
        groups = groups_of(pipeline)
        assert sorted(step.name for group in groups for step in group.steps) == ["a", "b", "c"]
        assert all(all(step.name in group.why for step in group.steps) for group in groups)


def begun() -> tuple[Pipeline, Stream]:
    pipeline = Pipeline("p")
    return pipeline, pipeline.source("s", "id long")


def test_a_group_has_the_key_groups_of_its_stateful_operator() -> None:
    pipeline, lines = begun()
    words = pipeline.operator("split", same, lines, key_groups=64)
    pipeline.sink("out", pipeline.operator("count", same, words, stateful=True, key_groups=1))
    assert [(group.name, group.key_groups) for group in groups_of(pipeline)] == [("split+count", 1)]


def test_a_union_of_a_stream_with_itself_is_not_fused_as_its_rows_are_there_twice() -> None:
    pipeline, lines = begun()
    a = pipeline.operator("a", same, lines)
    pipeline.sink("out", pipeline.operator("b", same, a | a))
    assert [group.name for group in groups_of(pipeline)] == ["a", "b"]


def test_the_name_of_a_group_is_a_file_name(tmp_path: Path) -> None:
    pipeline, stream = begun()
    for number in range(9):
        stream = pipeline.operator(f"normalise_customer_addresses_{number}", same, stream)
    pipeline.sink("out", stream)
    groups = groups_of(pipeline)
    assert sorted(step.name for group in groups for step in group.steps) == sorted(pipeline.steps)
    for group in groups:
        (tmp_path / group.name).mkdir()
