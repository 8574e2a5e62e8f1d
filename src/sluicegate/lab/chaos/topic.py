"""A Kafka topic on a private broker, fed so that every row is in it exactly once even if the broker is killed."""

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
    """A topic and its idempotent ``producer``: the broker drops records that are sent twice."""

    broker: Broker
    name: str
    producer: Any
    sent: int = 0

    def send(self, rows: Sequence[Mapping[str, object]]) -> None:
        """Send rows and wait until the broker has acknowledged all, however long it is down."""
        for one in rows:
            self.producer.produce(self.name, json.dumps(one).encode(), partition=self.sent % _PARTITIONS)
            self.sent += 1
        while self.producer.flush(_LOOK_S):
            pass


@contextmanager
def fed_topic(folder: Path) -> Iterator[FedTopic]:
    """Create a topic on a new broker that runs within the block."""
    try:
        from confluent_kafka import Producer

        from sluicegate.lab.chaos.broker import Broker
        from sluicegate.spark.cluster.daemons import free_port
    except ImportError as problem:
        raise EnvironmentLacks("attach:kafka needs confluent-kafka: pip install 'sluicegate[kafka]'") from problem
    broker = Broker(folder, free_port())
    broker.up()
    try:
        settings = {"bootstrap.servers": broker.address, "log_level": 0, "enable.idempotence": True}
        producer = Producer({**settings, "message.timeout.ms": 0, "linger.ms": 5})  # retries without limit
        yield FedTopic(broker, broker.topic(_PARTITIONS), producer)
    finally:
        broker.down()
