"""An attached application of two queries, one of which reads the topic that the other writes, shown in all six ways."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.attach.attached import PARTITIONS, attached_session, batches, until
from tests.kafka.producing import Numbers

from sluicegate.cli.app import run as sluicegate
from sluicegate.dashboard.metrics import metrics_text
from sluicegate.dashboard.record import Record
from sluicegate.dashboard.routes import run_document
from sluicegate.lab.chaos.broker import Broker
from sluicegate.runlog.layout import Layout
from sluicegate.spark.attach.application import Application
from sluicegate.spark.attach.controller import AttachController
from sluicegate.spark.kafka.connector import add_connector

pytestmark = pytest.mark.slow


@dataclass(frozen=True, slots=True)
class Run:
    """The record of an application, and what its last query counted."""

    folder: Path
    topics: tuple[str, str]
    counts: dict[int, int]
    sent: int


@pytest.fixture(scope="module")
def shown(kafka: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """The controller ticks here and not in a process of its own, so that the test knows how often."""
    base = tmp_path_factory.mktemp("shown")
    spark = attached_session(base / "record", {"spark.sluicegate.slo": "p95=20s"})
    try:
        add_connector(spark)
        yield _run(kafka, spark, base)
    finally:
        spark.stop()


def _run(kafka: Broker, spark: SparkSession, base: Path) -> Run:
    record, topics = base / "record", (kafka.topic(2), kafka.topic(2))
    numbers = Numbers(kafka, topics[0], 2)
    stream = spark.readStream.format("kafka").option("kafka.bootstrap.servers", kafka.address)
    stream = stream.option("startingOffsets", "earliest").option("kafka.metadata.max.age.ms", "1000")
    raw = stream.option("subscribe", topics[0]).load().selectExpr("split(CAST(value AS string), ' ')[0] AS value")
    clean = (
        raw.dropDuplicates(["value"])
        .writeStream.queryName("clean")
        .format("kafka")
        .option("kafka.bootstrap.servers", kafka.address)
    )
    queries = [clean.option("topic", topics[1]).option("checkpointLocation", str(base / "clean")).start()]
    counted = stream.option("subscribe", topics[1]).load().selectExpr("CAST(CAST(value AS string) AS long) % 7 AS k")
    writer = counted.groupBy("k").count().writeStream.queryName("counts").outputMode("update").format("memory")
    queries.append(writer.option("checkpointLocation", str(base / "counts")).start())
    numbers.steadily(100)
    layout = Layout(record)
    controller = AttachController(layout, Application.read(layout))

    def decided() -> bool:
        time.sleep(1.0)
        controller.step(time.time())
        told = layout.decisions.exists() and layout.ticks.exists()
        return told and all(len(batches(record, name)) >= 6 for name in ("clean", "counts"))

    assert until(decided, 180)
    numbers.end()
    for query in queries:
        query.processAllAvailable()

    def none_behind() -> bool:  # the broker is asked once a second
        time.sleep(0.5)
        controller.step(time.time())
        lanes = controller.lanes.values()
        return all(lane.observer.topics.behind(time.time()) == 0 for lane in lanes)

    assert until(none_behind, 30)
    counts: dict[int, int] = {}
    for row in spark.table("counts").collect():
        counts[row["k"]] = max(counts.get(row["k"], 0), row["count"])
    return Run(record, topics, counts, numbers.sent)


def test_rows_went_through_both_queries_once_with_tasks_moved(shown: Run) -> None:
    assert shown.counts == Counter(number % 7 for number in range(shown.sent))
    tasks = [batch["tasks"] for batch in batches(shown.folder, "counts")]
    assert min(tasks) < PARTITIONS


def test_status_shows_lag_and_the_joined_graph(shown: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert sluicegate(["status", str(shown.folder), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["joined"] == [{"writer": "clean", "reader": "counts", "through": shown.topics[1]}]
    assert set(told["topics"]) == set(told["operators"]) == {"clean", "counts"}
    assert told["topics"]["counts"]["partitions"] == 2
    assert told["p95_s"] > told["mean_s"] > 0
    assert sluicegate(["status", str(shown.folder)]) == 0
    out = capsys.readouterr().out.replace("\n", " ")
    assert f"clean -> counts through {shown.topics[1]}" in out
    assert "rows behind" in out


def test_top_shows_them_too(shown: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert sluicegate(["top", str(shown.folder)]) == 0
    out = capsys.readouterr().out
    assert f"clean -> counts through {shown.topics[1]}" in out
    assert "counts: 0 rows behind" in out


def test_explain_tells_a_decision_with_its_reasons(shown: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert sluicegate(["explain", "1", "--folder", str(shown.folder), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["reasons"]


def test_the_report_is_a_page_with_both_queries(shown: Run, tmp_path: Path) -> None:
    assert sluicegate(["report", str(shown.folder), "--html", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text()
    assert "clean" in page
    assert "counts" in page


def test_the_dashboard_draws_one_graph_and_prometheus_reads_it(shown: Run) -> None:
    record = Record(shown.folder)
    while record.look():
        pass
    document = run_document(record)
    names = {box["name"]: box["kind"] for box in document["drawing"]["boxes"]}
    assert names["clean"] == names["counts"] == "operator"
    assert names[shown.topics[0]] == "source"
    assert shown.topics[1] not in names, "a topic between two queries is neither a source nor a sink"
    assert document["decisions_made"] >= 1
    text = metrics_text(record).decode()
    assert 'sluicegate_processors{operator="counts"}' in text
    assert 'sluicegate_latency_seconds{quantile="0.95"}' in text
    assert 'sluicegate_queue_rows{operator="counts"}' in text
