"""A pipeline whose source is Kafka, on a real broker: seen, bounded, limited, exact. One story, told once."""

from __future__ import annotations

import contextlib
import itertools
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.cimpl import NewTopic
from pyspark.sql import SparkSession
from tests.kafka.producing import Numbers

from sluicegate.lab.chaos.broker import Broker
from sluicegate.runlog.batch_log import BatchRecord
from sluicegate.runlog.plan_file import PlanFile
from sluicegate.spark.cluster.waiting import wait_until
from sluicegate.spark.edges.kept import read_stream
from sluicegate.spark.edges.offsets import last_batch
from sluicegate.spark.kafka.connector import has_connector
from sluicegate.spark.kafka.offsets import planned
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.observing import Observer
from sluicegate.spark.pipeline.runtime import Running, start

pytestmark = pytest.mark.slow
NAME = "events+parse"
PARTITIONS, MORE_PARTITIONS = 4, 6
WAITING_ROWS, PER_S, PACE_S, MOST_ROWS = 500, 400, 1.0, 200
DOWN_S = 4.0


def reading(address: str, topic: str) -> Pipeline:
    made = Pipeline("events")
    events = made.source(
        "events",
        stream=lambda spark: (
            spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", address)
            .option("subscribe", topic)
            .option("startingOffsets", "earliest")
            .option("kafka.metadata.max.age.ms", "1000")
            .load()
        ),
    )
    parse = "CAST(split(CAST(value AS string), ' ')[{}] AS long) AS {}"
    made.sink(
        "out", made.operator("parse", lambda f: f.selectExpr(parse.format(0, "id"), parse.format(1, "ms")), events)
    )
    return made


@dataclass(slots=True)
class Story:
    """What was seen on the way."""

    arrivals_per_s: float = 0.0
    sent_per_s: float = 0.0
    lag: int = 0
    lag_true: int = 0
    queue: float = 0.0
    paced: list[BatchRecord] = field(default_factory=list)
    records: list[BatchRecord] = field(default_factory=list)
    bounds: list[int] = field(default_factory=list)
    rows: list[tuple[int, int]] = field(default_factory=list)
    sent: int = 0
    brought: bool = False
    sampled_s: list[float] = field(default_factory=list)
    resumed: list[BatchRecord] = field(default_factory=list)
    waited_from_s: float = 0.0
    problems: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def story(kafka: Broker, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Story:
    folder, topic, told = tmp_path_factory.mktemp("run"), kafka.topic(PARTITIONS), Story()
    numbers = Numbers(kafka, topic, PARTITIONS)
    numbers.send(WAITING_ROWS)

    def found() -> list[tuple[int, int]]:
        return [(int(row.id), int(row.ms)) for row in read_stream(spark, folder, "parse").collect()]

    def all_out() -> bool:
        return wait_until(lambda: len(found()) >= numbers.sent, 90.0, 0.2)

    with start(reading(kafka.address, topic), spark, folder) as running:
        told.brought = has_connector(spark)
        assert all_out()
        _unread(running, numbers, told)
        _paced(running, numbers, told, all_out)
        _more_partitions(running, numbers, told, all_out)
        _broker_away(kafka, running, numbers, all_out)
        assert wait_until(lambda: rows_in(running.records(NAME)) == numbers.sent, 60.0, 0.1)
        told.records, told.sent, told.problems = running.records(NAME), numbers.sent, running.restarts
        told.sampled_s = [line["at_s"] for line in samples(running)]
    numbers.send(WAITING_ROWS)
    sent_s = time.time()
    time.sleep(2.0)
    with start(reading(kafka.address, topic), spark, folder) as running:
        assert all_out()
        assert wait_until(lambda: rows_in(running.records(NAME)) == numbers.sent, 60.0, 0.1)
        told.resumed = [record for record in running.records(NAME) if record.published_s > sent_s]
    told.waited_from_s, told.rows = sent_s, found()
    return told


def rows_in(records: list[BatchRecord]) -> int:
    return sum(record.rows for record in records)


def samples(running: Running) -> list[dict[str, float]]:
    return [json.loads(line) for line in running.layout.source(NAME).read_text().splitlines()]


def _unread(running: Running, numbers: Numbers, told: Story) -> None:
    """Rows come, and no batch takes them: a pace of a minute."""
    running.set_paces({NAME: 60.0})
    numbers.send(10)  # a batch that was due before the pace was known takes these
    time.sleep(1.5)
    observer = Observer.of(running.layout, running.graph)
    began_s, before = time.time(), numbers.sent
    observer.observe(began_s)
    numbers.steadily(PER_S)
    time.sleep(1.0)
    observer.observe(time.time())
    time.sleep(3.0)
    seen = observer.observe(time.time())
    numbers.end()
    told.arrivals_per_s = seen.arrivals_per_s or 0.0
    ended_s = time.time()
    told.sent_per_s = (numbers.sent - before) / (ended_s - began_s)
    assert wait_until(lambda: samples(running)[-1]["at_s"] > ended_s, 60.0, 0.1)
    seen = observer.observe(time.time())
    batch = last_batch(running.layout.checkpoint(NAME))
    taken = planned(running.layout.checkpoint(NAME), -1 if batch is None else batch)
    told.lag, told.lag_true = int(samples(running)[-1]["behind"]), numbers.sent - sum(taken.values())
    told.queue = seen.of(NAME).queue_rows or 0.0
    told.bounds.append(observer.most_tasks[NAME])


def _paced(running: Running, numbers: Numbers, told: Story, all_out: Callable[[], bool]) -> None:
    plan = PlanFile(running.layout.plan)
    plan.change({NAME: replace(plan.read().of(NAME), pace_s=PACE_S, most_rows=MOST_ROWS)})
    since = last_batch(running.layout.checkpoint(NAME)) or 0
    assert all_out()
    assert wait_until(lambda: rows_in(running.records(NAME)) == numbers.sent, 60.0, 0.1)
    told.paced = [record for record in running.records(NAME) if record.batch > since]


def _more_partitions(running: Running, numbers: Numbers, told: Story, all_out: Callable[[], bool]) -> None:
    numbers.add_partitions(MORE_PARTITIONS)
    running.set_paces({NAME: 0.0})
    assert wait_until(lambda: samples(running)[-1]["tasks"] == MORE_PARTITIONS, 60.0, 0.2)
    observer = Observer.of(running.layout, running.graph)
    observer.observe(time.time())
    told.bounds.append(observer.most_tasks[NAME])
    numbers.send(60)
    assert all_out()


def _broker_away(kafka: Broker, running: Running, numbers: Numbers, all_out: Callable[[], bool]) -> None:
    kafka.down()
    time.sleep(DOWN_S)
    running.check()
    kafka.up()
    numbers.send(60)
    assert all_out()


def test_a_pipeline_that_reads_kafka_brings_the_connector_to_its_session(story: Story) -> None:
    assert story.brought


def test_arrivals_are_known_while_no_batch_takes_them(story: Story) -> None:
    assert story.arrivals_per_s == pytest.approx(story.sent_per_s, rel=0.3)


def test_lag_is_what_the_broker_has_beyond_what_batches_took(story: Story) -> None:
    assert story.lag == story.lag_true > PER_S
    assert story.queue == story.lag


def test_a_batch_takes_no_more_than_the_plan_allows(story: Story) -> None:
    assert max(record.rows for record in story.paced) <= MOST_ROWS + PARTITIONS  # the connector rounds by partition
    assert len(story.paced) >= 1.5 * PER_S / MOST_ROWS


def test_batches_keep_the_pace_of_the_plan(story: Story) -> None:
    """A batch that begins late, by up to one pace, lets the next one begin as much earlier."""
    assert len(story.paced) > 2
    took_s = story.paced[-1].started_s - story.paced[0].started_s
    assert took_s >= 0.85 * (len(story.paced) - 2) * PACE_S


def test_partitions_that_are_added_raise_the_bound(story: Story) -> None:
    assert story.bounds == [PARTITIONS, MORE_PARTITIONS]


def test_births_are_those_of_the_rows_themselves(story: Story) -> None:
    born = [point for record in story.records for point in record.born.points]
    assert sum(weight for _, weight in born) == pytest.approx(story.sent)
    assert sum(record.rows for record in story.records) == story.sent
    measured_s = sum(at_s * weight for at_s, weight in born) / story.sent
    true_s = sum(ms for number, ms in story.rows if number < story.sent) / story.sent / 1e3
    assert measured_s == pytest.approx(true_s, abs=0.5)


def test_a_broker_that_was_away_costs_no_row_and_no_restart(story: Story) -> None:
    assert sorted(number for number, _ in story.rows) == list(range(story.sent + WAITING_ROWS))
    assert story.problems == []
    assert max(after - before for before, after in itertools.pairwise(story.sampled_s)) >= DOWN_S - 1.0


def test_what_came_while_nothing_ran_is_read_once_and_dated_by_the_broker(story: Story) -> None:
    assert sum(record.rows for record in story.resumed) == WAITING_ROWS
    first = story.resumed[0]
    age_s, born_s = first.published_s - story.waited_from_s, first.born.mean_s
    assert born_s is not None
    assert born_s == pytest.approx(story.waited_from_s, abs=0.5 * age_s + 0.5)
    assert age_s > 2.0


def test_k_beyond_the_partitions_is_not_what_a_batch_ran_with(story: Story) -> None:
    assert max(record.processors for record in story.records) <= MORE_PARTITIONS


@pytest.mark.long
def test_a_topic_that_was_made_anew_stops_its_reader_with_one_line(
    kafka: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    topic = kafka.topic(1)
    Numbers(kafka, topic, 1).send(100)
    with start(reading(kafka.address, topic), spark, tmp_path) as running:
        assert wait_until(lambda: running.read("parse").count() == 100, 90.0, 0.2)
    kafka.admin.delete_topics([topic])[topic].result(30)
    assert wait_until(lambda: _made_anew(kafka, topic), 30.0, 0.2)
    Numbers(kafka, topic, 1).send(10)
    with start(reading(kafka.address, topic), spark, tmp_path) as running:
        assert wait_until(lambda: bool(running.stopped), 120.0, 0.2)
        told = str(running.stopped[NAME])
        assert sorted(row.id for row in running.read("parse").collect()) == list(range(100))
    assert "rows are not in Kafka any more" in told
    assert "from 100 to 10" in told
    assert "failOnDataLoss" in told
    assert "\n" not in told


def _made_anew(kafka: Broker, topic: str) -> bool:
    """``False`` while the broker still deletes the old one."""
    with contextlib.suppress(KafkaException):
        for made in kafka.admin.create_topics([NewTopic(topic, 1, 1)]).values():
            made.result(30)
        return True
    return False
