"""Kafka clients for both ends of a real-time query: end offsets, the output rows, and a feed for input rows."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import pyarrow as pa

from sluicegate.errors import EnvironmentLacks
from sluicegate.spark.edges.topic import KafkaTopic
from sluicegate.spark.kafka.edge import make_topic
from sluicegate.spark.kafka.records import BrokerDoesNotAnswer
from sluicegate.spark.realtime.marks import HEADER, Timed, timed

_ANSWER_S = 15.0
_AT_ONCE = 5_000


def partitions_of(topic: KafkaTopic) -> int:
    """The number of partitions of a topic; refused if the broker does not have it."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    try:
        known = AdminClient(dict(topic.client)).list_topics(timeout=_ANSWER_S).topics
    except KafkaException as problem:
        said = problem.args[0].str() if problem.args else str(problem)
        raise EnvironmentLacks(
            f"no Kafka broker answers at {topic.servers}: {said}; start it, or name another"
        ) from None
    if topic.topic not in known:
        raise EnvironmentLacks(f"topic {topic.topic!r} is not at {topic.servers}: create it first")
    return len(known[topic.topic].partitions)


class TopicEnds:
    """Reads the end offsets of a topic from the broker; not thread-safe."""

    def __init__(self, topic: KafkaTopic, partitions: int) -> None:
        from confluent_kafka import Consumer, TopicPartition

        settings = {"group.id": "sluicegate-ends", "enable.auto.commit": False}
        self._consumer = Consumer({**dict(topic.client), **settings})
        self._places = [TopicPartition(topic.topic, number) for number in range(partitions)]

    def ends(self) -> dict[int, int]:
        """One past the last offset of each partition."""
        from confluent_kafka import KafkaException

        try:
            asked = [(p.partition, self._consumer.get_watermark_offsets(p, timeout=_ANSWER_S)) for p in self._places]
        except KafkaException as problem:
            raise BrokerDoesNotAnswer(f"topic {self._places[0].topic!r}: {problem}") from None
        return {partition: int(high) for partition, (_, high) in asked}

    def close(self) -> None:
        self._consumer.close()


class SinkRows:
    """Reads the times of the output rows, starting at the present end of the topic."""

    def __init__(self, topic: KafkaTopic, partitions: int) -> None:
        from confluent_kafka import Consumer, TopicPartition

        ends = TopicEnds(topic, partitions)
        self.began = ends.ends()
        ends.close()
        settings = {"group.id": "sluicegate-times", "enable.auto.commit": False, "fetch.wait.max.ms": 100}
        self._consumer = Consumer({**dict(topic.client), **settings})
        self._consumer.assign([TopicPartition(topic.topic, p, at) for p, at in self.began.items()])

    def take(self, wait_s: float) -> list[Timed]:
        """The rows since the last call; waits up to ``wait_s`` for them."""
        found = []
        for record in self._consumer.consume(_AT_ONCE, timeout=wait_s):
            if record.error() is None:
                header, out_s = dict(record.headers() or ()).get(HEADER), record.timestamp()[1] / 1e3
                one = timed(header, out_s) if isinstance(header, bytes) else None
                found += [one] if one is not None else []
        return found

    def close(self) -> None:
        self._consumer.close()


class TopicFeed:
    """Writes tables to a topic, one JSON record per row; ``rows`` is the number of rows in the topic."""

    def __init__(self, topic: KafkaTopic) -> None:
        from confluent_kafka import Producer

        make_topic(topic)
        self._topic, self._partitions = topic, partitions_of(topic)
        ends = TopicEnds(topic, self._partitions)
        self.rows = sum(ends.ends().values())
        ends.close()
        self._producer: Any = Producer({**dict(topic.client), "enable.idempotence": True, "linger.ms": 1})

    def append(self, table: pa.Table, born: Iterable[tuple[float, float]] | None = None) -> None:
        """Send all rows; their creation time is the Kafka timestamp of their records, ``born`` is ignored."""
        for row in table.to_pylist():
            value = json.dumps(row, default=_as_text).encode()
            self._send(value, self.rows % self._partitions)
            self.rows += 1
        self._producer.poll(0)

    def flush(self) -> None:
        if self._producer.flush(2 * _ANSWER_S):
            raise EnvironmentLacks(f"the Kafka broker at {self._topic.servers} does not take rows: is it still there?")

    def _send(self, value: bytes, partition: int) -> None:
        while True:
            try:
                self._producer.produce(self._topic.topic, value, partition=partition)
                return
            except BufferError:  # the producer's queue is full
                self._producer.poll(0.1)


def _as_text(value: object) -> object:
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC).isoformat(timespec="microseconds")
    if isinstance(value, Decimal):
        return float(value)
    return str(value)
