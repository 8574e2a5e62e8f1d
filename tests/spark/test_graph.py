from __future__ import annotations

from pyspark.sql import DataFrame

from headgate.spark.graph import RunningGraph, fused
from headgate.spark.pipeline import Pipeline


def same(*rows: DataFrame) -> DataFrame:
    return rows[0]


def graph_of(pipeline: Pipeline, fuse: bool = True) -> RunningGraph:
    return RunningGraph.of(pipeline, fused(pipeline, fuse))


def looped() -> Pipeline:
    pipeline = Pipeline("p")
    lines, back = pipeline.source("lines", "id long"), pipeline.loop("back", "id long")
    routed = pipeline.splitter("route", same, lines | back, outputs=["again", "done"])
    pipeline.close(back, routed["again"])
    count = pipeline.operator("count", same, routed["done"], stateful=True, key_groups=3)
    pipeline.sink("out", count)
    return pipeline


def test_a_graph_comes_back_as_it_was_written() -> None:
    graph = graph_of(looped())
    assert RunningGraph.from_json(graph.to_json()) == graph


def test_a_loop_is_an_edge_that_leads_back() -> None:
    graph = graph_of(looped())
    assert graph.node("route").reads == ("lines", "route.again")
    assert graph.readers("route.again") == ("route",)
    edges = {(edge.origin, edge.target) for edge in graph.topology().edges}
    assert edges == {("source:lines", "route"), ("route", "route"), ("route", "count"), ("count", "sink")}


def test_a_stateful_node_carries_its_key_groups() -> None:
    node = graph_of(looped()).node("count")
    assert (node.stateful, node.key_groups, node.terminal) == (True, 3, True)


def test_operators_that_share_a_query_are_one_operator_of_the_topology() -> None:
    pipeline = Pipeline("p")
    stream = pipeline.source("lines", "id long")
    for name in ("a", "b"):
        stream = pipeline.operator(name, same, stream)
    pipeline.sink("out", stream)
    graph = graph_of(pipeline)
    assert graph.topology().names == (graph.nodes[0].name,)


def test_a_stream_of_sparks_own_is_a_source_of_the_topology() -> None:
    pipeline = Pipeline("p")
    ticks = pipeline.source("ticks", stream=lambda spark: spark.readStream.format("rate").load())
    pipeline.sink("out", pipeline.operator("count", same, ticks, stateful=True))
    graph = graph_of(pipeline)
    edges = {(edge.origin, edge.target) for edge in graph.topology().edges}
    assert (graph.sources, edges) == ((), {("source:ticks", "ticks"), ("ticks", "count"), ("count", "sink")})
