"""Runs a Kafka broker from Maven's jars, on loopback, in one process.

Its version is defined only here; ``$SLUICEGATE_KAFKA_BROKER`` overrides it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from sluicegate.spark.cluster.daemons import free_port
from sluicegate.spark.cluster.java import LOOPBACK, QUICK_JAVA, find_java
from sluicegate.spark.kafka.maven import jars_of

_VERSION = os.environ.get("SLUICEGATE_KAFKA_BROKER", "4.1.0")
COORDINATES = (
    f"org.apache.kafka:kafka_2.13:{_VERSION}",
    f"org.apache.kafka:kafka-tools:{_VERSION}",
    "org.slf4j:slf4j-simple:1.7.36",
)
_UP_S, _DOWN_S = 60.0, 30.0


@dataclass(slots=True)
class Broker:
    """One node in the broker and controller roles; its data is in ``folder`` and survives ``down``."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None
    _admin: AdminClient | None = field(default=None, repr=False)

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self.port}"

    def up(self) -> None:
        """Start it, formatting its storage the first time, and wait until it accepts connections."""
        settings = self.folder / "server.properties"
        if not settings.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            settings.write_text(_settings(self.folder, self.port, free_port()), encoding="utf-8")
            node = uuid.uuid4().hex[:22]
            subprocess.run(
                [*_java(), "kafka.tools.StorageTool", "format", "-t", node, "-c", str(settings)],
                check=True,
                capture_output=True,
            )
        with (self.folder / "broker.log").open("ab") as log:
            self.process = subprocess.Popen([*_java(), "kafka.Kafka", str(settings)], stdout=log, stderr=log)
        until = time.monotonic() + _UP_S
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"the Kafka broker does not come up: see {self.folder / 'broker.log'}")
            time.sleep(0.2)

    def down(self) -> None:
        """SIGTERM, and SIGKILL if it has not ended after ``_DOWN_S``."""
        if self.process is None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(_DOWN_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None

    def kill(self) -> None:
        """SIGKILL, as if its machine failed: nothing is flushed."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def topic(self, partitions: int) -> str:
        """Create a topic and return its name, which is unique."""
        name = f"t-{uuid.uuid4().hex[:8]}"
        for made in self.admin.create_topics([NewTopic(name, partitions, 1)]).values():
            made.result(30)
        return name

    @property
    def admin(self) -> AdminClient:
        if self._admin is None:
            self._admin = AdminClient({"bootstrap.servers": self.address, "log_level": 0})
        return self._admin

    def producer(self) -> Producer:
        return Producer({"bootstrap.servers": self.address, "linger.ms": 5, "log_level": 0})

    def _answers(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection((LOOPBACK, self.port), timeout=1):
            return True
        return False


def _java() -> list[str]:
    jars = jars_of("kafka-broker", COORDINATES, transitive=True)
    classes = os.pathsep.join(map(str, jars))
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
    return [str(find_java()), *QUICK_JAVA.split(), "-Xmx384m", quiet, "-cp", classes]


def _settings(folder: Path, port: int, controller_port: int) -> str:
    lines = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{LOOPBACK}:{controller_port}",
        "listeners": f"PLAINTEXT://{LOOPBACK}:{port},CONTROLLER://{LOOPBACK}:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://{LOOPBACK}:{port}",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": str(folder / "data"),
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
        "auto.create.topics.enable": "false",
    }
    return "".join(f"{key}={value}\n" for key, value in lines.items())
