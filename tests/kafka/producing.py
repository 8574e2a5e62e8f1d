"""Rows numbered from 0, each with the moment it was sent, spread over the partitions of a topic."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

from confluent_kafka.cimpl import NewPartitions

from sluicegate.lab.chaos.broker import Broker

_EVERY_S = 0.05


@dataclass(slots=True)
class Numbers:
    """Sends "number sent-at-in-ms" rows; ``sent`` of them are with the broker."""

    broker: Broker
    topic: str
    partitions: int
    sent: int = 0
    _ended: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def send(self, rows: int) -> None:
        producer = self.broker.producer()
        self._produce(producer, rows)
        assert producer.flush(60) == 0

    def add_partitions(self, total: int) -> None:
        """Let the topic have ``total`` partitions, and send to all of them from now on."""
        for made in self.broker.admin.create_partitions([NewPartitions(self.topic, total)]).values():
            made.result(30)
        self.partitions = total

    def steadily(self, rows_per_s: float) -> None:
        """From a thread, until ``end``."""
        self._thread = threading.Thread(target=self._run, args=(rows_per_s,), daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self, rows_per_s: float) -> None:
        producer, began_s, before = self.broker.producer(), time.time(), self.sent
        while not self._ended.wait(_EVERY_S):
            self._produce(producer, int(before + (time.time() - began_s) * rows_per_s) - self.sent)
            producer.poll(0)
        assert producer.flush(60) == 0

    def _produce(self, producer: object, rows: int) -> None:
        for number in range(self.sent, self.sent + rows):
            value = f"{number} {time.time() * 1e3:.0f}".encode()
            producer.produce(self.topic, value, partition=number % self.partitions)  # type: ignore[attr-defined]
        self.sent += rows
