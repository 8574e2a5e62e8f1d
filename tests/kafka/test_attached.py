"""Queries that read Kafka, attached and otherwise as anybody wrote them: what is seen of them against what is true.

One story: two queries of one application, one with state and one without, on a topic of four partitions of which one
gets no rows; then a batch that does not end, a broker that is away, partitions that are added, a topic that is deleted.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from tests.attach.attached import attached_session, batches, until, write_plan
from tests.kafka.producing import Numbers

from sluicegate.domain.births import quantile_s
from sluicegate.lab.chaos.broker import Broker
from sluicegate.runlog.layout import Layout
from sluicegate.spark.attach import topics as attached_topics
from sluicegate.spark.attach.application import queries_in
from sluicegate.spark.attach.observing import QueryObserver
from sluicegate.spark.attach.topics import PartitionSeen
from sluicegate.spark.kafka.connector import add_connector

pytestmark = pytest.mark.slow
PARTITIONS, MORE_PARTITIONS, FED = 4, 6, 3
PER_S, SECONDS, QUIET_S = 300, 12.0, 3.0


@dataclass(slots=True)
class Sink:
    """Takes batches of numbers with the moments they were sent at. ``gate`` holds a batch up."""

    gate: threading.Event = field(default_factory=threading.Event)
    taken: int = 0
    """Rows of all batches that have begun, the one that waits at the gate included."""
    rows: list[tuple[int, float]] = field(default_factory=list)
    passed: list[tuple[int, float, float]] = field(default_factory=list)
    """Of every row of a batch after the first: the batch, the moment it was sent and the moment it was here."""
    commits: Path | None = None
    committed_s: dict[int, float] = field(default_factory=dict)

    def __call__(self, batch: DataFrame, number: int) -> None:
        found = [(int(row.id), int(row.ms) / 1e3) for row in batch.collect()]
        self._note_commit(number - 1)
        self.taken += len(found)
        self.gate.wait(60)
        now_s = time.time()
        self.rows += found
        self.passed += [(number, sent_s, now_s) for _, sent_s in found] if number > 0 else []

    def _note_commit(self, number: int) -> None:
        """While the next batch runs: Spark deletes old commits."""
        if self.commits is not None and number >= 0:
            self.committed_s[number] = (self.commits / str(number)).stat().st_mtime

    def latencies_s(self) -> tuple[list[float], list[float]]:
        """What rows took until the sink had them, and until their batch was committed: the truth lies between."""
        self._note_commit(max(number for number, _, _ in self.passed))
        at_sink = [here_s - sent_s for _, sent_s, here_s in self.passed]
        return at_sink, [self.committed_s[number] - sent_s for number, sent_s, _ in self.passed]


@dataclass(frozen=True, slots=True)
class Away:
    """What is known while the broker is away; and what became of a query that was started then."""

    problem: str | None
    behind: float | None
    per_s: float | None
    early: str


@dataclass(slots=True)
class Story:
    """What was seen on the way."""

    sink: Sink
    sent: int = 0
    estimated: list[tuple[float, float]] = field(default_factory=list)
    true_s: tuple[list[float], list[float]] = ([], [])
    per_s: list[float] = field(default_factory=list)
    held: list[PartitionSeen] = field(default_factory=list)
    behind: float | None = None
    behind_true: int = 0
    most_tasks: int | None = None
    away: Away | None = None
    more: int | None = None
    deleted: str | None = None
    tasks: set[int] = field(default_factory=set)
    others_went_on: bool = False
    problems: list[object] = field(default_factory=list)


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("attached") / "record"


@pytest.fixture(scope="module")
def spark(record: Path) -> Iterator[SparkSession]:
    session = attached_session(record)
    add_connector(session)
    yield session
    session.stop()


@pytest.fixture(scope="module")
def story(kafka: Broker, spark: SparkSession, record: Path) -> Iterator[Story]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attached_topics, "_QUIET_S", QUIET_S)
        patch.setattr(attached_topics, "_BATCHES", 0)
        yield told(kafka, spark, record)


def read(spark: SparkSession, address: str, topic: str, options: Mapping[str, str] | None = None) -> DataFrame:
    kafka = spark.readStream.format("kafka").option("kafka.bootstrap.servers", address).option("subscribe", topic)
    kafka = kafka.option("startingOffsets", "earliest").option("kafka.metadata.max.age.ms", "1000")
    rows = kafka.options(**(options or {})).load()
    parse = "CAST(split(CAST(value AS string), ' ')[{}] AS long) AS {}"
    return rows.selectExpr(parse.format(0, "id"), parse.format(1, "ms"))


def started(rows: DataFrame, name: str, base: Path, sink: Callable[[DataFrame, int], None]) -> StreamingQuery:
    writer = rows.writeStream.queryName(name).option("checkpointLocation", str(base / name)).foreachBatch(sink)
    return writer.start()


def told(kafka: Broker, spark: SparkSession, record: Path) -> Story:
    topic, doomed, base = kafka.topic(PARTITIONS), kafka.topic(1), record.parent
    numbers, story = Numbers(kafka, topic, FED), Story(Sink())
    story.sink.gate.set()
    story.sink.commits = base / "ids" / "commits"
    write_plan(record, {"ids": {"processors": 2}})
    rows = read(spark, kafka.address, topic)
    numbers.send(FED)
    queries = [
        started(rows.dropDuplicates(["id"]), "ids", base, story.sink),
        started(rows, "plain", base, lambda batch, _: batch.write.format("noop").mode("overwrite").save()),
    ]
    observer, plain = (QueryObserver.of(Layout(record), name) for name in ("ids", "plain"))
    assert until(lambda: len(batches(record, "ids")) >= 1 and len(batches(record, "plain")) >= 1, 120)
    _steady(numbers, observer, plain, record, story)
    _held_up(numbers, observer, story)
    story.away = _away(kafka, spark, numbers, observer, record)
    assert until(lambda: len(story.sink.rows) == numbers.sent)
    _more(numbers, plain, story)
    _deleted(kafka, spark, doomed, record, story, numbers)
    for query in queries:
        query.processAllAvailable()
        story.problems.append(query.exception())
        query.stop()
    story.sent = numbers.sent
    story.tasks = {batch["tasks"] for batch in batches(record, "ids")[1:]}
    return story


def _steady(numbers: Numbers, observer: QueryObserver, plain: QueryObserver, record: Path, story: Story) -> None:
    """Rows at a steady rate, looked at every half second."""
    observer.observe(time.time(), True, None)
    numbers.steadily(PER_S)
    story.sink.passed.clear()
    end_s = time.time() + SECONDS
    while time.time() < end_s:
        time.sleep(0.5)
        seen = observer.observe(time.time(), True, None)
        story.estimated += observer.ages
        if end_s - time.time() < SECONDS / 4 and seen.arrivals_per_s is not None:
            story.per_s.append(seen.arrivals_per_s)
    numbers.end()
    assert until(lambda: len(story.sink.rows) == numbers.sent)
    newest = max(number for number, _, _ in story.sink.passed)
    assert until(lambda: batches(record, "ids")[-1]["batch"] >= newest)
    observer.observe(time.time(), True, None)
    story.estimated += observer.ages
    story.true_s = story.sink.latencies_s()
    plain.observe(time.time(), True, None)
    story.most_tasks = plain.helpful_tasks


def _held_up(numbers: Numbers, observer: QueryObserver, story: Story) -> None:
    """A batch that does not end: rows wait behind it in three partitions, and the fourth has none."""
    story.sink.gate.clear()
    before = story.sink.taken
    numbers.send(FED)
    assert until(lambda: story.sink.taken > before)
    numbers.send(30)

    def looked() -> list[PartitionSeen]:
        story.behind = observer.observe(time.time(), True, None).backlog_rows
        return observer.topics.seen(0.0)

    assert until(lambda: sum(one.state == "stuck" for one in looked()) == FED, 30)
    story.held, story.behind_true = looked(), numbers.sent - story.sink.taken
    story.sink.gate.set()
    assert until(lambda: len(story.sink.rows) == numbers.sent)


def _away(kafka: Broker, spark: SparkSession, numbers: Numbers, observer: QueryObserver, record: Path) -> Away:
    kafka.down()
    hasty = {"kafka.default.api.timeout.ms": "3000", "kafka.request.timeout.ms": "2000"}
    early = started(read(spark, kafka.address, numbers.topic, hasty), "early", record.parent, lambda batch, _: None)
    problem: tuple[str | None, float | None, float | None] = (None, 0.0, 0.0)

    def noticed() -> bool:
        nonlocal problem
        seen = observer.observe(time.time(), True, None)
        problem = (observer.topics.problem, seen.backlog_rows, seen.arrivals_per_s)
        return observer.topics.problem is not None

    assert until(noticed, 30)
    assert until(lambda: not early.isActive, 60)
    assert until(lambda: not queries_in(Layout(record))["early"].active, 60)
    kafka.up()
    numbers.send(60)
    return Away(*problem, str(early.exception()))


def _more(numbers: Numbers, plain: QueryObserver, story: Story) -> None:
    numbers.add_partitions(MORE_PARTITIONS)

    def bound() -> int | None:
        numbers.send(MORE_PARTITIONS)
        time.sleep(0.5)
        plain.observe(time.time(), True, None)
        story.more = plain.helpful_tasks
        return story.more

    assert until(lambda: bound() == MORE_PARTITIONS, 60)


def _deleted(kafka: Broker, spark: SparkSession, topic: str, record: Path, story: Story, numbers: Numbers) -> None:
    """Under a query of its own: what Spark makes of that is the user's; the other queries go on."""
    Numbers(kafka, topic, 1).send(5)
    doomed = started(read(spark, kafka.address, topic), "doomed", record.parent, lambda batch, _: None)
    observer = QueryObserver.of(Layout(record), "doomed")
    assert until(lambda: bool(batches(record, "doomed")), 60)
    for done in kafka.admin.delete_topics([topic]).values():
        done.result(30)

    def noticed() -> bool:
        observer.observe(time.time(), True, None)
        story.deleted = observer.topics.problem
        return story.deleted is not None or not doomed.isActive

    assert until(noticed, 60)
    numbers.send(12)
    story.others_went_on = until(lambda: len(story.sink.rows) == numbers.sent)
    doomed.stop()


def test_latency_by_offsets_and_time_is_that_of_the_rows_themselves(story: Story) -> None:
    weight = sum(n for _, n in story.estimated)
    at_sink, committed = (sorted(ages[: round(weight)]) for ages in story.true_s)
    mean_s = sum(age * n for age, n in story.estimated) / weight
    assert 0.9 * sum(at_sink) / len(at_sink) - 0.15 < mean_s < 1.1 * sum(committed) / len(committed) + 0.15
    most = int(0.95 * len(at_sink))
    p95_s = quantile_s(story.estimated, 0.95)
    assert p95_s is not None
    assert 0.85 * at_sink[most] - 0.2 < p95_s < 1.15 * committed[most] + 0.2


def test_the_load_is_what_comes_to_the_broker(story: Story) -> None:
    assert sorted(story.per_s)[len(story.per_s) // 2] == pytest.approx(PER_S, rel=0.15)


def test_rows_behind_are_known_by_partition_while_a_batch_runs(story: Story) -> None:
    assert story.behind == story.behind_true >= 30
    missed = story.behind_true - 30  # of the first rows, one a partition: the batch may have begun before they all came
    assert sorted(one.lag for one in story.held) == [0, *[10] * (FED - missed), *[11] * missed]


def test_a_partition_whose_rows_wait_is_stuck_and_one_without_rows_is_idle(story: Story) -> None:
    assert {one.state for one in story.held if one.lag} == {"stuck"}
    assert [one.state for one in story.held if not one.lag] == ["idle"]


def test_no_more_tasks_than_there_are_partitions_with_rows(story: Story) -> None:
    assert story.most_tasks == FED
    assert story.more == MORE_PARTITIONS


def test_a_broker_that_is_away_is_said_and_nothing_is_made_up(story: Story) -> None:
    assert story.away is not None
    assert story.away.problem is not None
    assert story.away.problem.startswith("the broker does not answer")
    assert (story.away.behind, story.away.per_s) == (None, None)


def test_a_query_that_finds_no_broker_at_its_start_fails_with_spark_s_own_words(story: Story) -> None:
    assert story.away is not None
    assert "TimeoutException" in story.away.early


def test_a_topic_that_is_deleted_is_said_and_the_other_queries_go_on(story: Story) -> None:
    assert story.deleted is None or "no such topic" in story.deleted
    assert story.others_went_on


def test_every_row_is_in_the_sink_once_with_tasks_moved(story: Story) -> None:
    assert story.tasks == {2}
    assert story.problems == [None, None]
    assert sorted(number for number, _ in story.sink.rows) == list(range(story.sent))
