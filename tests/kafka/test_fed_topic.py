"""The feed of `attach:kafka`: every row is in the topic once, although the broker is killed and stopped meanwhile."""

from __future__ import annotations

import json
import signal
import threading
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from sluicegate.lab.chaos.broker import Broker
from sluicegate.lab.chaos.topic import FedTopic, fed_topic

pytestmark = pytest.mark.slow
ROWS = 2000


def found(topic: FedTopic) -> list[int]:
    consumer = Consumer(
        {"bootstrap.servers": topic.broker.address, "group.id": "all", "auto.offset.reset": "earliest", "log_level": 0}
    )
    consumer.subscribe([topic.name])
    rows: list[int] = []
    until_s = time.monotonic() + 60.0
    quiet = 0
    while time.monotonic() < until_s and (len(rows) < ROWS or quiet < 3):
        records = [record for record in consumer.consume(500, timeout=1.0) if record.error() is None]
        quiet = 0 if records else quiet + 1
        rows += [json.loads(record.value() or b"")["n"] for record in records]
    consumer.close()
    return sorted(rows)


def hurt(broker: Broker) -> None:
    time.sleep(0.3)
    broker.kill()
    broker.up()
    process = broker.process
    assert process is not None
    process.send_signal(signal.SIGSTOP)
    time.sleep(1.0)
    process.send_signal(signal.SIGCONT)


def test_every_row_is_in_the_topic_once_whatever_becomes_of_the_broker(tmp_path: Path) -> None:
    with fed_topic(tmp_path / "kafka") as topic:
        hurting = threading.Thread(target=hurt, args=(topic.broker,))
        hurting.start()
        for first in range(0, ROWS, 50):
            topic.send([{"n": number} for number in range(first, first + 50)])
            time.sleep(0.02)
        hurting.join()
        assert found(topic) == list(range(ROWS))
