"""Rates and shares of time that the observer of a pipeline reports while batches take longer than a look."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sluicegate.domain.births import Births
from sluicegate.runlog.batch_log import BatchRecord, append_line
from sluicegate.runlog.layout import Layout
from sluicegate.runlog.plan_file import OperatorPlan, PlanFile, PlanInForce
from sluicegate.spark.edges.folder import FolderEdge
from sluicegate.spark.edges.manifest import DataFile
from sluicegate.spark.pipeline.graph import Node, RunningGraph
from sluicegate.spark.pipeline.observing import Observer

SCHEMA = json.dumps({"type": "struct", "fields": [{"name": "id", "type": "long"}]})
WORK = RunningGraph("one", ("rows",), (Node("work", ("rows",), ("work",), False, 8, True, None),), ("work",))


def folder_of(folder: Path, graph: RunningGraph, name: str) -> Layout:
    layout = Layout(folder)
    layout.description.write_text(graph.to_json())
    for stream in (*graph.sources, name):
        FolderEdge(layout.edge(stream)).create(SCHEMA)
    (layout.checkpoint(name) / "offsets").mkdir(parents=True)
    PlanFile(layout.plan).write(PlanInForce(1, {name: OperatorPlan(1)}))
    return layout


def test_the_rate_of_an_edge_holds_between_the_batches_of_a_slow_writer(tmp_path: Path) -> None:
    """A batch of 800 rows every 8 s is 100 rows/s at every look, not at one of four; and 0 once none comes."""
    layout = folder_of(tmp_path, WORK, "work")
    observer, rates = Observer.of(layout, WORK), []
    for look in range(40):
        now_s = 1000.0 + 2 * look
        if look % 4 == 0:
            file = DataFile(f"data/{look // 4}-x/part-0.parquet", 800)
            FolderEdge(layout.edge("rows")).publish(look // 4, [file], Births(), now_s - 0.5)
        rates.append(observer.observe(now_s).of("work").arrivals_per_s)
    assert rates[5:] == pytest.approx([100.0] * 35)
    assert observer.observe(1100.0).arrivals_per_s == 0.0


def test_an_operator_inside_a_long_batch_is_busy(tmp_path: Path) -> None:
    layout = folder_of(tmp_path, WORK, "work")
    observer = Observer.of(layout, WORK)
    FolderEdge(layout.edge("rows")).publish(0, [DataFile("data/0-x/part-0.parquet", 100)], Births(), 999.0)
    assert observer.observe(1000.0).of("work").utilisation is None
    offset = json.dumps({"edge": "rows", "next": 1})
    (layout.checkpoint("work") / "offsets" / "0").write_text(f"v1\n{{}}\n{offset}")
    assert [observer.observe(1000.0 + 2 * look).of("work").utilisation for look in (1, 2, 3)] == [1.0, 1.0, 1.0]
    record = BatchRecord(0, 1000.0, 1008.0, 8.0, 100, 100, 1, 999.0, Births())
    append_line(layout.batches("work"), record.to_json())
    assert observer.observe(1008.0).of("work").utilisation == 1.0
    assert observer.observe(1010.0).of("work").utilisation == 0.0


EVENTS = RunningGraph("one", (), (Node("events", (), ("events",), False, 8, True, "events"),), ("events",))


def _ended(layout: Layout, batch: int, started_s: float, took_s: float, rows: int, k: int = 1) -> None:
    (layout.checkpoint("events") / "offsets" / str(batch)).write_text("v1\n{}\n-")
    record = BatchRecord(batch, started_s, started_s + took_s, took_s, rows, rows, k, None, Births())
    append_line(layout.batches("events"), record.to_json())


def test_a_source_without_rows_has_no_change_overdue(tmp_path: Path) -> None:
    """Hours without load: no batch begins, so k is in force for the next one, and there is nothing to report."""
    layout = folder_of(tmp_path, EVENTS, "events")
    observer = Observer.of(layout, EVENTS)
    _ended(layout, 0, 999.0, 1.0, 100, k=7)
    sample = {"at_s": 1000.0, "rows": 100, "behind": 0, "tasks": 12}
    append_line(layout.source("events"), json.dumps(sample))
    PlanFile(layout.plan).write(PlanInForce(2, {"events": OperatorPlan(7)}))
    observer.observe(1000.0)
    PlanFile(layout.plan).write(PlanInForce(3, {"events": OperatorPlan(1)}))
    for now_s in (1002.0, 8000.0):
        append_line(layout.source("events"), json.dumps({**sample, "at_s": now_s}))
        seen = observer.observe(now_s)
        assert (seen.running, seen.rescaling, seen.overdue) == ({"events": 1}, False, ())
    append_line(layout.source("events"), json.dumps({**sample, "at_s": 8002.0, "rows": 150, "behind": 50}))
    PlanFile(layout.plan).write(PlanInForce(4, {"events": OperatorPlan(3)}))
    assert observer.observe(8002.0).rescaling


def test_the_rate_of_a_source_of_files_is_from_batch_to_batch(tmp_path: Path) -> None:
    """Batches of 10 s that each take the 1000 rows that came meanwhile: 100 rows/s at every look, 0 when it is over."""
    layout = folder_of(tmp_path, EVENTS, "events")
    observer, rates = Observer.of(layout, EVENTS), []
    for look in range(40):
        now_s = 1000.0 + 2 * look
        if look % 5 == 0:
            _ended(layout, look // 5, now_s - 10.0, 10.0, 1000)
        rates.append(observer.observe(now_s).arrivals_per_s)
    assert rates[6:] == pytest.approx([100.0] * 34)
    assert observer.observe(1200.0).arrivals_per_s == 0.0
