"""A Kafka edge between operators of a pipeline: k moved, the driver killed, the broker away; the sinks are exact."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import SparkSession
from tests.kafka import edge_story
from tests.kafka.edge_story import EACH, closed_windows, edged, expected, run, table

from sluicegate.errors import BadInput, EnvironmentLacks
from sluicegate.lab.chaos.broker import Broker
from sluicegate.runlog.layout import Layout
from sluicegate.spark.edges.folder import FolderEdge
from sluicegate.spark.edges.spoiled import EdgeSpoiled
from sluicegate.spark.edges.topic import KafkaTopic, Records
from sluicegate.spark.kafka.edge import KafkaEdge
from sluicegate.spark.kafka.records import Receiver
from sluicegate.spark.kafka.sink import kafka_sink
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.runtime import start
from sluicegate.spark.pipeline.verify import verify

pytestmark = pytest.mark.slow
TABLES = 8


@dataclass(frozen=True, slots=True)
class Story:
    """What is there after all of it."""

    code: int
    log: str
    resumed_at: int
    kept: list[dict[str, Any]]
    counts: dict[int, int]
    windows: list[tuple[int, int]]
    records: int
    k: dict[str, set[int]]
    faults: tuple[str, ...]


@pytest.fixture(scope="module")
def story(kafka: Broker, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Story:
    base = tmp_path_factory.mktemp("edge")
    folder, topic = base / "run", "edged.parsed"
    killed = _killed(folder, kafka.address, topic)
    with start(edged(kafka.address, topic), spark, folder) as running:
        resumed_at = running.feed("rows").rows
        running.drain(180)
        for tables, k in ((4, {"parse": 3, "keep": 2, "count": 1}), (6, {"parse": 1, "keep": 3, "count": 4})):
            running.set_processors(k)
            run(running, tables * EACH)
        kafka.down()
        running.feed("rows").append(table(6 * EACH))
        time.sleep(3.0)
        kafka.up()
        run(running, TABLES * EACH)
        kept = [row.asDict() for row in running.read("keep").collect()]
        counts: dict[int, int] = {}
        for row in running.read("count").collect():
            counts[row["k"]] = max(counts.get(row["k"], 0), row["count"])
        windows = [(round(row["since"].timestamp()), row["count"]) for row in running.read("window").collect()]
        names = ("parse", "keep", "count")
        moved = {name: {record.processors for record in running.records(name)} for name in names}
    faults = verify(folder).faults
    return Story(*killed, resumed_at, kept, counts, windows, _records(kafka, topic), moved, faults)


def _killed(folder: Path, address: str, topic: str) -> tuple[int, str]:
    root = Path(__file__).parents[2]
    paths = os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, edge_story.__file__, str(folder), address, topic],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    return done.returncode, done.stderr


def _records(kafka: Broker, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": kafka.address, "group.id": "test"})
    ends = [consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=30) for p in range(3)]
    consumer.close()
    return sum(high - low for low, high in ends)


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    at = row["at"].timestamp() if row["at"].tzinfo else row["at"].astimezone().timestamp()
    ratio = None if math.isnan(row["ratio"]) else row["ratio"]
    return {**row, "at": round(at * 1e6), "ratio": ratio, "raw": bytes(row["raw"])}


def test_the_driver_was_killed_with_records_that_nobody_published(story: Story) -> None:
    assert story.code == -signal.SIGKILL, story.log[-2000:]
    assert 0 < story.resumed_at < TABLES * EACH
    assert story.records > len(story.kept), "records of the interrupted batch are in the topic twice"


def test_every_row_comes_out_once_as_it_went_in(story: Story) -> None:
    rows, _ = expected(TABLES * EACH)
    assert sorted(map(_plain, story.kept), key=lambda row: row["id"]) == list(map(_plain, rows))


def test_a_second_reader_with_state_has_them_once_too(story: Story) -> None:
    assert story.counts == expected(TABLES * EACH)[1]


def test_a_watermark_closes_windows_behind_the_edge(story: Story) -> None:
    assert sorted(story.windows) == sorted(closed_windows(TABLES * EACH).items())


def test_k_moved_on_both_sides_of_the_edge(story: Story) -> None:
    assert story.k["parse"] >= {3, 1}
    assert story.k["keep"] >= {2, 3}
    assert story.k["count"] >= {1, 4}


def test_the_folder_is_sound(story: Story) -> None:
    assert story.faults == ()


def test_records_that_are_gone_are_refused_and_not_skipped(kafka: Broker) -> None:
    topic = kafka.topic(1)
    piece = pa.RecordBatch.from_pylist([{"path": Records("a", topic, 0, 0, 5, 5).path, "skip": 0, "take": 5}])
    with pytest.raises(EdgeSpoiled, match="0 of 5 rows"):
        list(Receiver(KafkaTopic(kafka.address, topic))(iter([piece])))


def test_an_edge_keeps_its_place(kafka: Broker, tmp_path: Path) -> None:
    schema, topic = '{"type": "struct", "fields": []}', kafka.topic(1)
    folder = Layout(tmp_path).edge("parsed")
    KafkaEdge(folder, KafkaTopic(kafka.address, topic)).create(schema)
    with pytest.raises(BadInput, match="has its rows in Kafka"):
        FolderEdge(folder).create(schema)
    with pytest.raises(BadInput, match="give the same topic"):
        KafkaEdge(folder, KafkaTopic(kafka.address, "another")).create(schema)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"topic": "another", "sum": "0123456789abcdef"}'])
def test_a_spoiled_record_of_its_topic_is_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "kafka.json").write_text(text, encoding="utf-8")
    with pytest.raises(EdgeSpoiled, match=r"^edge \S+: \S+kafka.json [^\n]+$"):
        KafkaEdge(tmp_path, KafkaTopic("127.0.0.1:9", "words")).create("{}")


def test_a_broker_that_is_down_at_the_start_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sluicegate.spark.kafka.edge._ANSWER_S", 1.0)
    with pytest.raises(EnvironmentLacks, match=r"no Kafka edge 'words' at 127.0.0.1:9: .*start the broker"):
        KafkaEdge(tmp_path, KafkaTopic("127.0.0.1:9", "words")).create("{}")


def test_what_cannot_pass_through_kafka_is_refused() -> None:
    pipeline = Pipeline("refused")
    rows = pipeline.source("rows", "id long")
    made = pipeline.operator("made", lambda frame: frame, rows)
    with pytest.raises(BadInput, match="operator with one output"):
        pipeline.edge(rows, kafka="localhost:9092")
    with pytest.raises(BadInput, match="give host:port"):
        pipeline.edge(made, kafka="localhost")
    pipeline.edge(made, kafka="localhost:9092")
    with pytest.raises(BadInput, match="declared twice"):
        pipeline.edge(made, kafka="localhost:9092")
    pipeline.sink("out", made)
    with pytest.raises(BadInput, match="add an operator behind it"):
        pipeline.check()


def test_a_batch_that_is_written_to_a_topic_again_has_the_same_keys(kafka: Broker, spark: SparkSession) -> None:
    topic, rows = kafka.topic(2), [(1, "a"), (2, "b"), (2, "b"), (3, None)]
    write = kafka_sink(kafka.address, topic)
    write(spark.createDataFrame(rows, "id long, note string"), 7)
    write(spark.createDataFrame(rows[::-1], "id long, note string").repartition(3), 7)
    consumer = Consumer({"bootstrap.servers": kafka.address, "group.id": "sink", "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    found: list[Any] = []
    until_s = time.monotonic() + 60
    while len(found) < 2 * len(rows) and time.monotonic() < until_s:
        found += consumer.consume(10, timeout=1.0)
    consumer.close()
    by_key: dict[bytes, set[bytes]] = {}
    for record in found:
        assert dict(record.headers())["sluicegate-id"] == record.key()
        by_key.setdefault(record.key(), set()).add(record.value())
    assert len(found) == 2 * len(rows)
    told = sorted(json.loads(value)["id"] for values in by_key.values() for value in values)
    assert told == [1, 2, 2, 3], "each row once for who drops keys that are known"
