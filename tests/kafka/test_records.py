"""Rows of a Kafka edge as records, sent and read without Spark: slices of attempts that lie among others' records."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest

from sluicegate.errors import BadInput
from sluicegate.lab.chaos.broker import Broker
from sluicegate.spark.edges.spoiled import EdgeSpoiled
from sluicegate.spark.edges.topic import KafkaTopic, Records
from sluicegate.spark.kafka.edge import make_topic
from sluicegate.spark.kafka.records import Receiver, Sender

pytestmark = pytest.mark.slow


def sent(at: KafkaTopic, values: list[str]) -> list[Records]:
    """By one attempt of a task."""
    batches = [pa.RecordBatch.from_pydict({"value": values[i : i + 7]}) for i in range(0, len(values), 7)]
    (told,) = list(Sender(at)(iter(batches)))
    return [
        Records(t["attempt"], at.topic, t["partition"], t["first"], t["until"], t["rows"]) for t in told.to_pylist()
    ]


def read(at: KafkaTopic, records: Records, skip: int, take: int) -> list[str]:
    piece = pa.RecordBatch.from_pylist([{"path": records.path, "skip": skip, "take": take}])
    return [str(value) for batch in Receiver(at)(iter([piece])) for value in batch.column(0).to_pylist()]


@pytest.fixture(scope="module")
def at(kafka: Broker) -> KafkaTopic:
    made = KafkaTopic(kafka.address, "records", partitions=1, settings=(("client.id", "test"),))
    make_topic(made)
    make_topic(made)
    return made


def test_what_an_attempt_sent_is_read_back_in_any_slices(at: KafkaTopic) -> None:
    values = [f'{{"id": {n}, "text": "ü"}}' for n in range(50)]
    (records,) = sent(at, values)
    assert records.alone
    cuts = [0, 1, 20, 50]
    found = [value for low, high in itertools.pairwise(cuts) for value in read(at, records, low, high - low)]
    assert found == values


def test_records_of_other_attempts_are_passed_over(at: KafkaTopic) -> None:
    ours = [f"ours {n}" for n in range(20)]
    (first,) = sent(at, ours[:10])
    sent(at, ["of an attempt that failed"] * 5)
    (last,) = sent(at, ours[10:])
    among = Records(first.attempt, at.topic, 0, first.first, last.end, 10)
    assert not among.alone
    assert read(at, among, 0, 10) == ours[:10]
    assert read(at, among, 4, 3) == ours[4:7]


def test_an_attempt_without_rows_names_no_records(at: KafkaTopic) -> None:
    assert sent(at, []) == []


def test_records_that_are_not_all_there_are_refused(at: KafkaTopic) -> None:
    (records,) = sent(at, ["one", "two"])
    more = Records(records.attempt, at.topic, 0, records.first, records.end + 5, 7)
    with pytest.raises(EdgeSpoiled, match="0 of 7 rows"):
        read(at, more, 0, 7)
    beside = Records("nobody", at.topic, 0, records.first, records.end, 1)
    with pytest.raises(EdgeSpoiled, match="0 of 1 rows"):
        read(at, beside, 0, 1)


def test_names_that_no_topic_can_have_are_refused() -> None:
    with pytest.raises(BadInput, match="Kafka topic is 'a b'"):
        KafkaTopic("localhost:9092", "a b")


def test_a_row_that_kafka_does_not_take_is_told_with_the_setting_that_allows_it() -> None:
    nowhere = KafkaTopic("127.0.0.1:1", "records")
    with pytest.raises(BadInput, match=r"a row is larger .* topic 'records': raise message.max.bytes"):
        sent(nowhere, ["x" * 3_000_000])


def test_a_row_that_the_topic_does_not_take_is_told_likewise(kafka: Broker) -> None:
    wide = KafkaTopic(kafka.address, "narrow", partitions=1, settings=(("message.max.bytes", "9000000"),))
    make_topic(wide)
    with pytest.raises(BadInput, match=r"a row is larger .* topic 'narrow': raise message.max.bytes"):
        sent(wide, ["x" * 3_000_000])
