"""A sink's ``write`` to an external Kafka topic: at-least-once, with a de-duplication key on every row.

    pipeline.sink("out", counts, write=kafka_sink("host:9092", "counts"), keep=False)

A batch may be written again under the same number after a crash or an error. The key of a row consists of the
writer's name, that number, a hash of the row, and its position among equal rows of the batch; so a rewrite produces the
same keys, in whatever order rows come. A reader that drops known keys, or a compacted topic, has every row once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from sluicegate.spark.columns import column
from sluicegate.spark.edges.topic import KafkaTopic
from sluicegate.spark.kafka.connector import add_connector
from sluicegate.spark.kafka.records import JSON_OPTIONS

ID_HEADER = "sluicegate-id"


def kafka_sink(
    servers: str,
    topic: str,
    key: str | None = None,
    settings: Mapping[str, str] | None = None,
    writer: str = "",
) -> Callable[[DataFrame, int], None]:
    """Return a ``write`` for ``pipeline.sink`` that sends rows as JSON to ``topic``.

    The de-duplication key is the record's header "sluicegate-id"; it is also the record's key, unless ``key`` names a
    column. ``settings`` are those of Kafka's Java producer (security.protocol and the like). Where several sinks,
    pipelines or folders write to one topic give each a ``writer`` of its own, or equal rows of batches with the same
    number have the same key.
    """
    return _KafkaSink(KafkaTopic(servers, topic, settings=tuple((settings or {}).items())), key, writer)


def topic_and_key(write: object) -> tuple[KafkaTopic, str | None] | None:
    """The topic and key column of a sink's ``write``; ``None`` if it is not a Kafka sink's."""
    return (write.topic, write.key) if isinstance(write, _KafkaSink) else None


@dataclass(frozen=True, slots=True)
class _KafkaSink:
    topic: KafkaTopic
    key: str | None
    writer: str = ""

    def __call__(self, batch: DataFrame, number: int) -> None:
        add_connector(batch.sparkSession)
        key = column(self.key).cast("string") if self.key else F.lit(None).cast("string")
        columns = [column(name) for name in batch.columns]
        rows = batch.select(F.to_json(F.struct(*columns), JSON_OPTIONS).alias("value"), key.alias("given"))
        equal = F.row_number().over(Window.partitionBy("value").orderBy("given"))
        parts = (*([F.lit(self.writer)] if self.writer else ()), F.lit(number), F.md5("value"), equal)
        rows = rows.select("value", "given", F.concat_ws("-", *parts).alias("id"))
        header = F.struct(F.lit(ID_HEADER).alias("key"), F.col("id").cast("binary").alias("value"))
        records = rows.select(F.coalesce("given", "id").alias("key"), "value", F.array(header).alias("headers"))
        writer = records.write.format("kafka").option("kafka.bootstrap.servers", self.topic.servers)
        settings = {f"kafka.{name}": value for name, value in self.topic.settings}
        writer.options(**settings).option("topic", self.topic.topic).save()
