"""The controller of an operator that reads a topic: it sees the driver's log of the broker's offsets alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sluicegate.domain.births import Births
from sluicegate.runlog.batch_log import BatchRecord, append_line
from sluicegate.runlog.layout import Layout
from sluicegate.runlog.plan_file import OperatorPlan, PlanFile, PlanInForce
from sluicegate.spark.controller import Control, Controller
from sluicegate.spark.edges.folder import FolderEdge
from sluicegate.spark.pipeline.graph import Node, RunningGraph
from sluicegate.spark.pipeline.observing import Observer

GRAPH = RunningGraph("one", (), (Node("events", (), ("events",), False, 8, True, "events"),), ("events",))
MU_PER_S = 100.0
CONTROL = Control(slo=("mean=2s",), budget=16, interval_s=1.0, cooldown_s=1.0, settle_down_s=5.0)


class Topic:
    """What a pipeline that reads a topic leaves on disk, second by second."""

    def __init__(self, folder: Path, partitions: int) -> None:
        self.layout, self.partitions = Layout(folder), partitions
        self.layout.description.write_text(GRAPH.to_json())
        FolderEdge(self.layout.edge("events")).create(json.dumps({"type": "struct", "fields": []}))
        PlanFile(self.layout.plan).write(PlanInForce(1, {"events": OperatorPlan(1)}))
        self.rows = self.taken = self.batch = 0

    @property
    def k(self) -> int:
        return PlanFile(self.layout.plan).read().of("events").processors

    def second(self, now_s: float, rows: int, batch: bool = True) -> None:
        self.rows += rows
        if batch:
            self._batch(now_s)
        sample = {"at_s": now_s, "rows": self.rows, "behind": self.rows - self.taken, "tasks": self.partitions}
        append_line(self.layout.source("events"), json.dumps(sample))

    def _batch(self, now_s: float) -> None:
        k = min(self.k, self.partitions) if self.partitions else self.k
        taken = min(self.rows - self.taken, int(0.7 * k * MU_PER_S))
        took_s, born = 0.2 + 0.02 * k + taken / (k * MU_PER_S), Births.of([(now_s - 1.0, float(taken))])
        record = BatchRecord(
            self.batch, now_s - took_s, now_s, took_s, taken, taken, k, now_s - 1.0, born, work_s=taken / MU_PER_S
        )
        append_line(self.layout.batches("events"), record.to_json())
        self.batch, self.taken = self.batch + 1, self.taken + taken


def test_arrivals_and_lag_are_known_before_a_batch_has_ended(tmp_path: Path) -> None:
    topic = Topic(tmp_path, 4)
    observer = Observer.of(topic.layout, GRAPH)
    for second in range(3):
        topic.second(1000.0 + second, 250, batch=False)
    observer.observe(1002.1)
    topic.second(1003.0, 250, batch=False)
    seen = observer.observe(1003.1)
    assert seen.arrivals_per_s == seen.of("events").arrivals_per_s == pytest.approx(250.0)
    assert seen.of("events").queue_rows == seen.backlog_rows == 1000


def test_no_rate_is_made_up_while_the_broker_does_not_answer(tmp_path: Path) -> None:
    topic = Topic(tmp_path, 4)
    observer = Observer.of(topic.layout, GRAPH)
    topic.second(1000.0, 250)
    observer.observe(1000.1)
    topic.second(1001.0, 250)
    observer.observe(1001.1)
    seen = observer.observe(1003.1)
    assert seen.arrivals_per_s is None
    assert seen.of("events").queue_rows == topic.rows - topic.taken


def drive(topic: Topic, controller: Controller, seconds: int, at_s: float) -> set[str]:
    reasons: set[str] = set()
    for second in range(seconds):
        topic.second(at_s + second, 900)
        reasons |= set(controller.step(at_s + second + 0.1)[1].reasons)
    return reasons


def test_k_is_bounded_by_the_partitions_and_the_reasons_say_so(tmp_path: Path) -> None:
    topic = Topic(tmp_path, 4)
    controller = Controller(topic.layout, CONTROL)
    reasons = drive(topic, controller, 25, 1000.0)
    assert topic.k == 4
    assert any("one for each of the 4 partitions it reads" in reason for reason in reasons)
    topic.partitions = 8
    reasons = drive(topic, controller, 25, 1025.0)
    assert topic.k == 8
    assert any("one for each of the 8 partitions it reads" in reason for reason in reasons)


def test_a_source_without_a_limit_of_tasks_does_not_bound_k(tmp_path: Path) -> None:
    topic = Topic(tmp_path, 0)
    drive(topic, Controller(topic.layout, CONTROL), 25, 1000.0)
    assert topic.k > 8
