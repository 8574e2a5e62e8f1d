"""Builds the single streaming query of real-time mode, from topic to topic: stages joined by exchanges, with marks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from sluicegate.errors import BadInput
from sluicegate.spark.columns import column
from sluicegate.spark.edges.topic import KafkaTopic
from sluicegate.spark.kafka.connector import add_connector
from sluicegate.spark.kafka.records import JSON_OPTIONS
from sluicegate.spark.pipeline.elements import Source, Step
from sluicegate.spark.realtime.marks import COLUMN, HEADER, NOW
from sluicegate.spark.realtime.stages import BATCH_S

_BORN = "timestamp"
"""Column of Spark's Kafka source with the timestamp of a record."""
COUNTED = "sluicegate."
"""Prefix, before a stage's name, of the observed metric with its row count, reported when a batch ends."""
SETTINGS = {
    # sorting before a round-robin exchange would wait for all rows of the batch
    "spark.sql.execution.sortBeforeRepartition": "false",
}


@dataclass(frozen=True, slots=True)
class Program:
    """A pipeline's operators between two topics; ``key`` is the column used as the record key, if any."""

    name: str
    steps: tuple[Step, ...]
    stream: Callable[[SparkSession], DataFrame]
    sink: KafkaTopic
    key: str | None = None

    def start(self, spark: SparkSession, checkpoint: str, processors: Mapping[str, int]) -> StreamingQuery:
        """Start the query; ``processors`` are the tasks of every stage behind the first."""
        rows = self.rows(spark, processors)
        columns = [column(name) for name in rows.columns if name != COLUMN]
        times = F.struct(F.lit(HEADER).alias("key"), F.col(COLUMN).cast("binary").alias("value"))
        key = [column(self.key).cast("string").alias("key")] if self.key else []
        value = F.to_json(F.struct(*columns), JSON_OPTIONS).alias("value")
        writer: Any = rows.select(*key, value, F.array(times).alias("headers")).writeStream.format("kafka")
        settings = {f"kafka.{name}": value for name, value in self.sink.settings}
        writer = writer.option("kafka.bootstrap.servers", self.sink.servers).options(**settings)
        writer = writer.option("topic", self.sink.topic).option("checkpointLocation", checkpoint)
        writer = writer.queryName(self.name).outputMode("update").trigger(realTime=f"{BATCH_S:g} seconds")
        query: StreamingQuery = writer.start()
        return query

    def rows(self, spark: SparkSession, processors: Mapping[str, int]) -> DataFrame:
        """The output of the last stage with its marks; refused if an operator cannot be a stage."""
        frame = _born(spark, self.stream(spark))
        for i, step in enumerate(self.steps):
            taken = _marked(frame if i == 0 else frame.repartition(processors[step.name]))
            taken = taken.observe(f"{COUNTED}{step.name}", F.count(F.lit(1)).alias("rows"))
            frame = _marked(_carried(spark, _given(spark, step, taken)))
        return frame


def declared(spark: SparkSession, source: Source, topic: KafkaTopic) -> DataFrame:
    """The rows of a source declared by its columns: JSON records of a topic, read from its beginning."""
    add_connector(spark)
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", topic.servers)
    raw = reader.option("subscribe", topic.topic).option("startingOffsets", "earliest").load()
    value = F.from_json(F.col("value").cast("string"), source.schema, JSON_OPTIONS)
    return raw.select(value.alias("row"), _BORN).select("row.*", _BORN)


def topic_of(spark: SparkSession, rows: DataFrame, source: str) -> KafkaTopic:
    """The topic that a user's stream reads; refused if it does not read exactly one Kafka topic."""
    plan: Any = _helper(spark)
    servers, topic = (plan.option(rows._jdf, name) for name in ("kafka.bootstrap.servers", "subscribe"))
    if plan.source(rows._jdf) != "kafka" or not servers or not topic or "," in topic:
        raise BadInput(
            f"source {source!r}: real-time mode reads one Kafka topic, given with subscribe; leave --mode real-time "
            "out, micro-batches read it"
        )
    return KafkaTopic(servers, topic)


def _born(spark: SparkSession, rows: DataFrame) -> DataFrame:
    """Add the first mark: the timestamp of the input record."""
    wanted = [name for name in rows.columns if name != _BORN]
    found = DataFrame(_helper(spark).carrying(rows._jdf, _BORN), spark)
    if dict(found.dtypes).get(_BORN) != "timestamp":
        raise BadInput(f"the source has a column {_BORN!r} that is not Kafka's own: rename it")
    own = [_BORN] if _BORN in rows.columns else []
    born = F.unix_micros(_BORN).cast("string").alias(COLUMN)
    return found.select(*[column(name) for name in (*wanted, *own)], born)


def _given(spark: SparkSession, step: Step, taken: DataFrame) -> DataFrame:
    made = step.function(taken)
    plan: Any = _helper(spark)
    if kind := plan.python(made._jdf):
        raise BadInput(
            f"operator {step.name!r} runs Python ({kind}): in real-time mode Spark hands rows to Python, and takes "
            "them back, only at the end of a batch; write it with Spark's SQL functions, or leave --mode real-time out"
        )
    if kind := plan.together(made._jdf):
        raise BadInput(
            f"operator {step.name!r} brings rows together ({kind}), so it keeps state: Spark fixes the number of its "
            "tasks in the checkpoint; leave --mode real-time out, micro-batches run it"
        )
    return made


def _marked(rows: DataFrame) -> DataFrame:
    return rows.withColumn(COLUMN, F.concat_ws(",", COLUMN, F.expr(NOW)))


def _carried(spark: SparkSession, rows: DataFrame) -> DataFrame:
    return DataFrame(_helper(spark).carrying(rows._jdf, COLUMN), spark)


def _helper(spark: SparkSession) -> Any:
    jvm: Any = spark._jvm
    return jvm.sluicegate.RealTime
