"""An edge whose rows are records of a Kafka topic; its manifests are in a folder, as for any other edge.

A task that sends rows marks each record with the id of its attempt and reports the offsets; the manifest lists only
attempts whose result Spark accepted. Records of failed attempts, or of an interrupted batch, have ids that no manifest
lists, and readers skip them. So the edge is exactly-once, although the topic itself is at-least-once. Records are
deleted by the topic's own retention.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from sluicegate.errors import BadInput, EnvironmentLacks
from sluicegate.runlog.files import read_if_there, write_whole
from sluicegate.spark.edges.folder import FolderEdge
from sluicegate.spark.edges.seal import opened, sealed
from sluicegate.spark.edges.spoiled import file_spoiled
from sluicegate.spark.edges.topic import KafkaTopic

_ANSWER_S = 15.0


@dataclass(frozen=True, slots=True)
class KafkaEdge(FolderEdge):
    """An edge in a Kafka topic; see the module docstring."""

    at: KafkaTopic

    @property
    def topic(self) -> KafkaTopic:
        return self.at

    def create(self, schema_json: str) -> None:
        told = self.folder / "kafka.json"
        known = _topic_in(told)
        if known is None and self.numbers():
            raise BadInput(
                f"edge {self.folder.name!r} has its rows in files: leave pipeline.edge(..., kafka=...) out, or start "
                "in a new folder"
            )
        if known is not None and known != self.at.topic:
            raise BadInput(
                f"edge {self.folder.name!r} has its rows in topic {known!r}, not in "
                f"{self.at.topic!r}: give the same topic, or start in a new folder"
            )
        make_topic(self.at)
        FolderEdge.create(self, schema_json)
        if known is None:
            write_whole(told, sealed(json.dumps({"topic": self.at.topic})))


def _topic_in(path: Path) -> str | None:
    """The topic that holds the rows of an edge; ``None`` before it has one."""
    try:
        text = read_if_there(path)
        return None if text is None else str(opened(text)[0]["topic"])
    except (ValueError, KeyError) as problem:
        told = str(problem) if type(problem) is ValueError else "names no topic"
        raise file_spoiled(f"edge {path.parent.name!r}", path, told) from problem


def make_topic(at: KafkaTopic) -> None:
    """Create the topic unless the broker has it."""
    try:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient
        from confluent_kafka.cimpl import NewTopic
    except ImportError:
        raise EnvironmentLacks("Kafka edges need confluent-kafka: pip install 'sluicegate[kafka]'") from None
    admin = AdminClient(dict(at.client))
    try:
        if at.topic not in admin.list_topics(timeout=_ANSWER_S).topics:
            for made in admin.create_topics([NewTopic(at.topic, at.partitions, -1)]).values():
                made.result(_ANSWER_S)
    except KafkaException as problem:
        said = problem.args[0].str() if problem.args else str(problem)
        if "already exists" in said:
            return
        raise EnvironmentLacks(
            f"no Kafka edge {at.topic!r} at {at.servers}: {said}: start the broker, or correct pipeline.edge(kafka=...)"
        ) from None
