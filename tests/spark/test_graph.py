from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.sql import DataFrame

from sluicegate.control import loop
from sluicegate.domain import Observation, OperatorObservation
from sluicegate.model.traffic import visits
from sluicegate.policy.catalogue import POLICIES
from sluicegate.spark.controller import Control, settings_of
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.graph import RunningGraph, fused


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


@pytest.mark.parametrize("name", ["../../home/x", "..", "/etc", "a/b", "", ".hidden", "a\0b", "a\nb"])
def test_a_description_whose_names_lead_out_of_the_folder_is_refused(name: str) -> None:
    """Whoever repairs a folder that somebody gave to him deletes folders by these names."""
    graph = graph_of(looped())
    nodes = (replace(graph.nodes[0], name=name), *graph.nodes[1:])
    for wrong in (replace(graph, nodes=nodes), replace(graph, sources=(name,)), replace(graph, kept=(name,))):
        with pytest.raises(ValueError, match="which is no operator and no stream"):
            RunningGraph.from_json(wrong.to_json())


def test_a_loop_is_an_edge_that_leads_back() -> None:
    graph = graph_of(looped())
    assert graph.node("route").reads == ("lines", "route.again")
    assert graph.readers("route.again") == ("route",)
    edges = {(edge.origin, edge.target) for edge in graph.topology().edges}
    assert edges == {("source:lines", "route"), ("route", "route"), ("route", "count"), ("count", "sink")}


def test_nothing_is_guessed_to_go_round_a_loop_before_arrivals_tell() -> None:
    """All of it, the guess for other edges, would be a loop without an end: no policy could be asked."""
    topology = graph_of(looped()).topology()
    assert [(edge.origin, edge.selectivity) for edge in topology.edges_back] == [("route", 0.0)]
    assert visits(topology).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("policy", [name for name, entry in sorted(POLICIES.items()) if not entry.clairvoyant])
def test_every_policy_can_be_asked_about_a_running_loop(policy: str) -> None:
    graph = graph_of(looped())
    state = loop.start(settings_of(graph, Control(policy, ("mean=5s",), budget=8)))
    running = dict.fromkeys(graph.topology().names, 1)
    for at_s in range(0, 20, 2):
        arrivals = {"route": OperatorObservation(arrivals_per_s=130.0), "count": OperatorObservation(100.0)}
        seen = Observation(float(at_s), 100.0, running, arrivals)
        state, decision = loop.tick(state, seen, float(at_s))
        running = dict(decision.running)
    assert all(k >= 1 for k in running.values())
    assert state.learned.visits[0] > 1.15


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
