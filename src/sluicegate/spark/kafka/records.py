"""Writes and reads the rows of a Kafka edge: sent by the tasks of one operator's batch, read by those of the next.

A record's value is the row as JSON, so that other programs can read the topic; its header "sluicegate" holds the id of
the task attempt that sent it. Tasks are Python, with one Kafka client per worker process.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sluicegate.errors import BadInput
from sluicegate.spark.edges.manifest import DataFile
from sluicegate.spark.edges.spoiled import EdgeSpoiled
from sluicegate.spark.edges.topic import KafkaTopic, Records

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructType

HEADER = "sluicegate"
PIECES = "path string, skip long, take long"
"""Input of a reader's tasks: which records, how many of them to skip and how many to take."""
_SENT = "attempt string, partition int, first long, until long, rows long"
_AT_ONCE = 2_000
_ANSWER_S = 30.0
JSON_OPTIONS = {
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""Spark's default formats would drop microseconds; offsets of old local times have seconds, which no format carries."""
_READ_OPTIONS = {**JSON_OPTIONS, "mode": "FAILFAST", "columnNameOfCorruptRecord": "sluicegate: none"}
"""A record that does not parse is an error, not a row of nulls; a column named _corrupt_record is one like others."""


class BrokerDoesNotAnswer(OSError):
    """The broker did not answer; the operation can be retried."""


def check_columns(operator: str, schema: StructType) -> None:
    """Refuse column types that do not survive a round trip through JSON."""
    for field in schema.fields:
        if (kind := _lossy(field.dataType)) is not None:
            raise BadInput(
                f"operator {operator!r} writes column {field.name!r} with {kind}, which JSON does not carry: turn it "
                "into another type, or leave pipeline.edge(..., kafka=...) out"
            )


def _lossy(kind: DataType) -> str | None:
    from pyspark.sql import types as T

    if isinstance(kind, T.StructType):
        return next((found for f in kind.fields if (found := _lossy(f.dataType))), None)
    if isinstance(kind, T.ArrayType):
        return _lossy(kind.elementType)
    if isinstance(kind, T.MapType):
        plain = isinstance(kind.keyType, T.StringType)
        return _lossy(kind.valueType) if plain else f"keys of type {kind.keyType.simpleString()}"
    times = (T.DateType, T.TimestampType, T.TimestampNTZType)
    carried = (T.NumericType, T.StringType, T.BooleanType, T.BinaryType, *times)
    return None if isinstance(kind, carried) else f"type {kind.simpleString()}"


def send(batch: DataFrame, at: KafkaTopic) -> tuple[DataFile, ...]:
    """Send all rows from the tasks that compute them; returns the entries of the manifest."""
    from pyspark.sql import functions as F

    from sluicegate.spark.columns import column

    columns = [column(name) for name in batch.columns]
    values = batch.select(F.to_json(F.struct(*columns), JSON_OPTIONS).alias("value"))
    told = values.mapInArrow(Sender(at), _SENT).collect()
    found = [Records(t.attempt, at.topic, t.partition, t.first, t.until, t.rows) for t in told]
    return tuple(DataFile(one.path, one.rows) for one in found)


def received(pieces: DataFrame, at: KafkaTopic, schema: StructType) -> DataFrame:
    """The rows of the records that ``pieces`` lists."""
    from pyspark.sql import functions as F

    values = pieces.mapInArrow(Receiver(at), "value string")
    return values.select(F.from_json("value", schema, _READ_OPTIONS).alias("row")).select("row.*")


@dataclass(frozen=True, slots=True)
class Sender:
    """Sends a task's rows to a topic; yields one row per partition once the broker has acknowledged all of them."""

    at: KafkaTopic

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        attempt, producer = uuid.uuid4().hex, _producer(self.at.client)
        headers, places = [(HEADER, attempt.encode())], dict[int, list[int]]()
        failed: list[Any] = []

        def delivered(problem: Any, record: Any) -> None:
            if problem is not None:
                failed.append(problem)
            else:
                places.setdefault(record.partition(), []).append(record.offset())

        sent = 0
        for batch in batches:
            for value in batch.column(0):
                _produce(producer, self.at, value.as_py(), headers, delivered)
                sent += 1
        left = producer.flush(2 * _ANSWER_S)
        if failed or left or sent != sum(map(len, places.values())):
            _producer.cache_clear()  # an idempotent producer may be unusable after a failure
            _check_size(self.at, failed)
            raise BrokerDoesNotAnswer(f"topic {self.at.topic!r} at {self.at.servers}: {(failed or ['no answer'])[0]}")
        found = sorted(places.items())
        yield pa.RecordBatch.from_pydict(
            {
                "attempt": pa.array([attempt for _ in found], pa.string()),
                "partition": pa.array([partition for partition, _ in found], pa.int32()),
                "first": pa.array([min(offsets) for _, offsets in found], pa.int64()),
                "until": pa.array([max(offsets) + 1 for _, offsets in found], pa.int64()),
                "rows": pa.array([len(offsets) for _, offsets in found], pa.int64()),
            }
        )


@dataclass(frozen=True, slots=True)
class Receiver:
    """Reads the values of the records assigned to a task; raises if any is missing."""

    at: KafkaTopic

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for piece in batch.to_pylist():
                yield from self._values(Records.at(piece["path"]), piece["skip"], piece["take"])

    def _values(self, records: Records, skip: int, take: int) -> Iterator[pa.RecordBatch]:
        found: list[str] = []
        got = 0
        for value in self._own(records, skip, take):
            found.append(value)
            got += 1
            if len(found) == _AT_ONCE:
                yield pa.RecordBatch.from_pydict({"value": found})
                found = []
        if found:
            yield pa.RecordBatch.from_pydict({"value": found})
        if got != take:
            raise EdgeSpoiled(
                f"topic {records.topic!r}, partition {records.partition}: {got} of {take} rows of a batch are there, "
                f"offsets {records.first} to {records.end}: the topic's retention deleted them, or it was made anew; "
                "start in a new folder, and let the topic keep rows for longer than its reader may be down"
            )

    def _own(self, records: Records, skip: int, take: int) -> Iterator[str]:
        """The values of ``take`` of the attempt's records, after the first ``skip``."""
        from confluent_kafka import TopicPartition

        consumer = _consumer(self.at.client)
        first = records.first + skip if records.alone else records.first
        place = TopicPartition(records.topic, records.partition, first)
        low, high = consumer.get_watermark_offsets(place, timeout=_ANSWER_S)
        if first < low or records.end > high:
            return  # deleted, or the topic was recreated
        consumer.assign([place])
        passed, own = (0 if records.alone else skip), records.attempt.encode()
        try:
            while take > 0:
                for record in _polled(consumer, records, min(take + passed, _AT_ONCE)):
                    if record.offset() >= records.end:
                        return
                    if (HEADER, own) not in (record.headers() or ()):
                        continue
                    if passed:
                        passed -= 1
                    elif take > 0:
                        take -= 1
                        yield record.value().decode()
                if consumer.position([place])[0].offset >= records.end:
                    return
        finally:
            consumer.unassign()


def _polled(consumer: Any, records: Records, most: int) -> list[Any]:
    found = consumer.consume(most, timeout=_ANSWER_S)
    problem = next((one.error() for one in found if one.error() is not None), None)
    if problem is not None or not found:
        raise BrokerDoesNotAnswer(f"topic {records.topic!r}: {problem or f'no answer for {_ANSWER_S:g} s'}")
    return list(found)


def _produce(producer: Any, at: KafkaTopic, value: str, headers: list[tuple[str, bytes]], delivered: Any) -> None:
    from confluent_kafka import KafkaException

    while True:
        try:
            producer.produce(at.topic, value.encode(), headers=headers, on_delivery=delivered)
            producer.poll(0)
            return
        except BufferError:  # the producer's queue is full
            producer.poll(0.1)
        except KafkaException as problem:
            _check_size(at, problem.args)
            raise


def _check_size(at: KafkaTopic, problems: Sequence[Any]) -> None:
    """Raise if a row is too large for Kafka: no retry helps, while other failures may pass."""
    from confluent_kafka import KafkaError

    if any(problem.code() == KafkaError.MSG_SIZE_TOO_LARGE for problem in problems):
        raise BadInput(
            f"a row is larger as JSON than Kafka takes in topic {at.topic!r}: raise message.max.bytes, both in the "
            "broker or topic (max.message.bytes) and in pipeline.edge(..., settings=), or leave the edge out"
        )


@cache
def _producer(client: tuple[tuple[str, str], ...]) -> Any:
    """An idempotent producer, so that retries of the client do not duplicate records."""
    from confluent_kafka import Producer

    settings = {"enable.idempotence": True, "linger.ms": 5, "message.timeout.ms": int(_ANSWER_S * 1e3)}
    return Producer({**dict(client), **settings})


@cache
def _consumer(client: tuple[tuple[str, str], ...]) -> Any:
    from confluent_kafka import Consumer

    settings = {"group.id": "sluicegate-edges", "enable.auto.commit": False, "auto.offset.reset": "error"}
    return Consumer({**dict(client), **settings})
