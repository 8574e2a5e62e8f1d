"""A Kafka topic that carries the rows of an edge, and where in it the rows of one task lie."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from sluicegate.errors import BadInput

_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")


@dataclass(frozen=True, slots=True)
class KafkaTopic:
    """A topic. ``servers`` as Kafka's clients take them ("host:9092,host2:9092"); ``partitions`` if it must be created.

    ``settings`` go to the clients unchanged (security.protocol and the like); they are not stored anywhere.
    """

    servers: str
    topic: str
    partitions: int = 4
    settings: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @property
    def client(self) -> tuple[tuple[str, str], ...]:
        """Configuration of every client of the topic."""
        return (("bootstrap.servers", self.servers), *self.settings, ("log_level", "0"))

    def __post_init__(self) -> None:
        if not isinstance(self.servers, str) or ":" not in self.servers:
            raise BadInput(f"Kafka servers are {self.servers!r}: give host:port, several with commas between")
        if not isinstance(self.topic, str) or not _NAME.fullmatch(self.topic):
            raise BadInput(f"Kafka topic is {self.topic!r}: give letters, digits, '.', '_' and '-'")
        if not isinstance(self.partitions, int) or self.partitions < 1:
            raise BadInput(f"partitions of topic {self.topic!r} is {self.partitions!r}: give at least 1")


@dataclass(frozen=True, slots=True)
class Records:
    """``rows`` records of one task attempt, between two offsets of a partition; other writers' records may lie between.

    >>> Records.at(Records("9f", "words", 2, 10, 14, 3).path)
    Records(attempt='9f', topic='words', partition=2, first=10, end=14, rows=3)
    """

    attempt: str
    topic: str
    partition: int
    first: int
    end: int
    rows: int

    @property
    def path(self) -> str:
        """The entry of a manifest in place of a file path."""
        return f"kafka/{self.attempt}/{self.topic}/{self.partition}/{self.first}/{self.end}/{self.rows}"

    @classmethod
    def at(cls, path: str) -> Records:
        _, attempt, topic, partition, first, end, rows = path.split("/")
        return cls(attempt, topic, int(partition), int(first), int(end), int(rows))

    @property
    def alone(self) -> bool:
        """Whether no other writer's record lies between: then each record can be found by its offset."""
        return self.end - self.first == self.rows


def in_topic(path: str) -> bool:
    """Whether an entry of a manifest names records of a topic."""
    return path.startswith("kafka/")
