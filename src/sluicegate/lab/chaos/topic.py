"""A topic of a Kafka broker of our own, fed so that every row is in it once, whatever becomes of the broker."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sluicegate.errors import EnvironmentLacks

if TYPE_CHECKING:
    from sluicegate.lab.chaos.broker import Broker

_PARTITIONS = 3
_LOOK_S = 1.0


@dataclass(slots=True)
class FedTopic:
    """``producer`` numbers what it sends, so that the broker drops what comes twice."""

    broker: Broker
    name: str
    producer: Any
    sent: int = 0

    def send(self, rows: Sequence[Mapping[str, object]]) -> None:
        """Returns once the broker has them all, however long it is away."""
        for one in rows:
            self.producer.produce(self.name, json.dumps(one).encode(), partition=self.sent % _PARTITIONS)
            self.sent += 1
        while self.producer.flush(_LOOK_S):
            pass


@contextmanager
def fed_topic(folder: Path) -> Iterator[FedTopic]:
    """A new topic of a new broker, for as long as the block lasts."""
    try:
        from confluent_kafka import Producer

        from sluicegate.lab.chaos.broker import Broker, free_port
    except ImportError as problem:
        raise EnvironmentLacks("attach:kafka needs confluent-kafka: pip install 'sluicegate[kafka]'") from problem
    broker = Broker(folder, free_port())
    broker.up()
    try:
        settings = {"bootstrap.servers": broker.address, "log_level": 0, "enable.idempotence": True}
        producer = Producer({**settings, "message.timeout.ms": 0, "linger.ms": 5})  # tried again for ever
        yield FedTopic(broker, broker.topic(_PARTITIONS), producer)
    finally:
        broker.down()
