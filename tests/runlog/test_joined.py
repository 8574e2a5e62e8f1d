"""Attached queries that read each other's topics and folders make one graph, also across applications."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sluicegate.dashboard.record import Record
from sluicegate.runlog.joined import joined, links, neighbours
from sluicegate.runlog.runs import registered

CLICKS, CLEAN, OUT = "kafka://a:9092,b:9092/clicks", "kafka://a:9092/clean", "/data/out"


def query(name: str, reads: tuple[str, str | None], writes: tuple[str, str | None]) -> dict[str, Any]:
    ends = {"reads": [reads[0]], "reads_at": [reads[1]], "writes": [writes[0]], "writes_at": [writes[1]]}
    return {"name": name, "active": True, "stateful": False, "key_groups": 1, **ends}


def application(name: str, *queries: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "attached": True, "sources": [], "kept": [], "nodes": list(queries)}


WASH = application("wash", query("clean", ("clicks", CLICKS), ("clean", CLEAN)))
COUNT = application("count", query("counts", ("clean", "kafka://c:9092,a:9092/clean"), ("out", OUT)))
LOAD = application("load", query("loading", ("out", OUT), ("loading-out", None)))
OTHER = application("other", query("alone", ("out", "/elsewhere/out"), ("alone-out", None)))


def test_queries_are_joined_by_topics_and_folders_near_and_far() -> None:
    found = [link.text for link in links(WASH, [LOAD, OTHER, COUNT])]
    assert found == ["clean -> count/counts through clean", "count/counts -> load/loading through out"]


def test_the_graph_has_the_sources_and_sinks_of_the_whole() -> None:
    graph = joined(COUNT, [WASH, LOAD, OTHER])
    assert {node["name"] for node in graph["nodes"]} == {"counts", "wash/clean", "load/loading"}
    assert (graph["sources"], graph["kept"]) == (["clicks"], ["loading-out"])


def test_topics_of_one_name_on_other_brokers_are_not_one() -> None:
    elsewhere = application("count", query("counts", ("clean", "kafka://z:9092/clean"), ("out", OUT)))
    assert links(WASH, [elsewhere]) == []


def test_places_that_are_not_known_join_nothing() -> None:
    one = application("one", query("a", ("in", None), ("out", None)))
    assert links(one, [application("two", query("b", ("out", None), ("end", None)))]) == []


def test_queries_of_one_application_are_joined_too() -> None:
    both = application("both", *WASH["nodes"], *COUNT["nodes"])
    assert [link.text for link in links(both, [])] == ["clean -> counts through clean"]


def test_the_dashboard_draws_the_applications_that_run_here_as_one_graph(tmp_path: Path) -> None:
    for app in (WASH, COUNT):
        (tmp_path / app["name"]).mkdir()
        (tmp_path / app["name"] / "pipeline.json").write_text(json.dumps(app))
    with (
        registered(tmp_path / "wash", "wash", temporary=False),
        registered(tmp_path / "count", "count", temporary=False),
    ):
        assert [one["name"] for one in neighbours(tmp_path / "wash")] == ["count"]
        drawing = Record(tmp_path / "wash").drawing
    assert {box["name"] for box in drawing["boxes"]} == {"clicks", "clean", "count/counts", "out"}
    assert ("clean", "count/counts") in {(arrow["origin"], arrow["target"]) for arrow in drawing["arrows"]}
