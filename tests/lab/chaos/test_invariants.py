"""What chaos looks at besides the answer is found where it is broken."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sluicegate.domain.births import Births
from sluicegate.lab.chaos.invariants import broken
from sluicegate.lab.chaos.passing import Passing, in_order
from sluicegate.runlog.batch_log import append_line
from sluicegate.runlog.layout import Layout
from sluicegate.spark.edges.folder import FolderEdge
from sluicegate.spark.edges.manifest import DataFile
from sluicegate.spark.edges.offsets import offset_of
from sluicegate.spark.pipeline.graph import Node, RunningGraph

SCHEMA = '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}'
GRAPH = RunningGraph("shop", ("lines",), (Node("count", ("lines",), ("count",), False, 1, True, None),), ("count",))


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """Three batches, all committed."""
    made = Layout(tmp_path)
    made.description.write_text(GRAPH.to_json())
    for stream in ("lines", "count"):
        edge = FolderEdge(made.edge(stream))
        edge.create(SCHEMA)
        for number in range(3):
            edge.publish(number, (), Births(()), 1.0)
    checkpoint = made.checkpoint("count")
    for log in ("offsets", "commits"):
        (checkpoint / log).mkdir(parents=True)
    (checkpoint / "metadata").write_text('{"id":"0a1b2c3d-0000-4000-8000-00000000000a"}')
    for number in range(3):
        (checkpoint / "offsets" / str(number)).write_text(f"v1\n{{}}\n{offset_of('lines', number + 1)}")
        (checkpoint / "commits" / str(number)).write_text("v1\n{}")
        append_line(made.batches("count"), json.dumps({"batch": number}))
    return made


def test_a_sound_folder_breaks_nothing(layout: Layout) -> None:
    assert broken(layout, GRAPH) == []


def test_a_batch_twice_a_gap_a_trace_and_what_is_left_over_are_found(layout: Layout) -> None:
    append_line(layout.batches("count"), json.dumps({"batch": 1}))
    (layout.checkpoint("count") / "commits" / "1").unlink()
    layout.controller_log.write_text("Traceback (most recent call last):\n  ...\nKeyError: 'x'\n")
    for number in range(60):
        (layout.edge("lines") / "data" / f"{number}-left").mkdir()
    found = "\n".join(broken(layout, GRAPH))
    assert "count: batch 1 is logged as committed 2 times" in found
    assert "count: commits have a gap: [0, 2]" in found
    assert "the controller left 1 traces, the last: KeyError: 'x'" in found
    assert "edge 'lines': 60 folders of data for 3 manifests" in found


def test_rows_have_passed_once_every_operator_has_committed_them_and_not_before(layout: Layout) -> None:
    assert Passing(layout, GRAPH).done()
    FolderEdge(layout.edge("lines")).publish(
        3, (DataFile("data/3-a/p.parquet", 5, 10, ""),), Births(((1.0, 5.0),)), 1.0
    )
    passing = Passing(layout, GRAPH)
    assert not passing.done()
    (layout.checkpoint("count") / "offsets" / "3").write_text(f"v1\n{{}}\n{offset_of('lines', 4)}")
    assert not passing.done(), "planned, not committed"
    (layout.checkpoint("count") / "commits" / "3").write_text("v1\n{}")
    assert passing.done()


def test_operators_are_waited_for_in_the_order_of_the_rows_way() -> None:
    def node(name: str, *reads: str) -> Node:
        return Node(name, reads, (name,), False, 1, False, None)

    loop = RunningGraph("x", ("in",), (node("c", "b"), node("b", "a", "c"), node("a", "in")), ())
    assert next(one.name for one in in_order(loop)) == "a"
    straight = RunningGraph("x", ("in",), (node("c", "b"), node("b", "a"), node("a", "in")), ())
    assert [one.name for one in in_order(straight)] == ["a", "b", "c"]
