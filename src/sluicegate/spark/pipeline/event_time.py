"""Carries watermarks across edges: the writer's goes into its manifests, and the reader's advances by them alone.

Spark keeps a watermark inside the query that defines it; in the next query only the schema shows that a column is event
time. So a stream whose schema has event time is given a watermark node when it is read. After each batch has been
executed, and before Spark evaluates its watermark nodes, the node of each edge is set to what the newest manifest of
the batch carries. The rest is Spark's own: the minimum over all nodes, late rows, released state, and the batch without
rows that releases it (``EventTime.java`` in the jar).

A manifest carries the watermark of the output rows: without state, the query's own after this batch; with state, the
one by which this batch released state, since rows as old as that may come with the next batch.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from sluicegate.spark.columns import column

_DELAY_MS = "spark.watermarkDelayMs"
"""Key in a column's metadata under which Spark keeps the watermark delay."""
_PLAIN, _TIMED = re.compile(r"\w+"), "sluicegate_event_time"


@dataclass(frozen=True, slots=True)
class EdgeNode:
    """The watermark node, in the plan of a query, that stands for one edge it reads."""

    node: str
    edge: str


@dataclass(frozen=True, slots=True)
class Advanced:
    """What a batch did to its query's watermark."""

    leaving_ms: int | None
    """The watermark of the rows that leave the query."""
    another: bool
    """Whether Spark runs one more batch to release what the watermark has passed."""


@dataclass(slots=True)
class QueryWatermark:
    """The watermark of one query, between the edges it reads and those it writes."""

    spark: SparkSession
    nodes: tuple[EdgeNode, ...]
    query: str = ""
    """The query's name, once started."""

    def advance(self, batch: int, watermarks_ms: Mapping[str, int]) -> Advanced:
        """Advance by the watermarks that the edges' manifests carry, after the batch was executed."""
        known = {one.node: watermarks_ms[one.edge] for one in self.nodes if one.edge in watermarks_ms}
        nodes = [one.node for one in self.nodes]
        session: Any = self.spark._jsparkSession
        leaving_ms, another = _jvm(self.spark).advance(session, self.query, batch, nodes, known)
        return Advanced(leaving_ms if leaving_ms >= 0 else None, bool(another))


def event_times(schema: StructType) -> dict[str, int]:
    """The columns that are event time, with the delay of each in ms."""
    return {field.name: int(field.metadata[_DELAY_MS]) for field in schema.fields if _DELAY_MS in field.metadata}


def marked(stream: DataFrame, edge: str, schema: StructType) -> tuple[DataFrame, tuple[EdgeNode, ...]]:
    """The stream of an edge with a watermark node, if its schema has event time.

    One node serves all such columns, as a query has one output watermark; Spark drops the mark of the other columns, so
    their metadata is set again. A name with a dot or a backtick, which Spark would parse, is replaced for it.
    """
    delays_ms = event_times(schema)
    if not delays_ms:
        return stream, ()
    timed, delay_ms = next(iter(delays_ms.items()))
    plain = _PLAIN.fullmatch(timed) is not None
    names = {f.name: f.name if plain or f.name != timed else _TIMED for f in schema.fields}
    named = stream if plain else stream.select([column(f.name).alias(names[f.name]) for f in schema.fields])
    with_node = named.withWatermark(names[timed], f"{delay_ms} milliseconds")
    node = EdgeNode(_jvm(stream.sparkSession).lastNode(with_node._jdf), edge)
    if plain and len(delays_ms) == 1:
        return with_node, (node,)
    columns = [
        column(names[f.name]).alias(f.name, metadata=f.metadata) if f.name in delays_ms else column(f.name)
        for f in schema.fields
    ]
    return with_node.select(columns), (node,)


def without_replaced(stream: DataFrame, nodes: tuple[EdgeNode, ...]) -> DataFrame:
    """Remove the nodes added by ``marked`` that a ``withWatermark`` of the operator replaces."""
    if not nodes:
        return stream
    spark = stream.sparkSession
    return DataFrame(_jvm(spark).withoutReplaced(stream._jdf, [one.node for one in nodes]), spark)


def is_in(stream: DataFrame) -> bool:
    """Whether a query of this stream has a watermark."""
    return bool(_jvm(stream.sparkSession).isIn(stream._jdf))


def is_defined_twice(stream: DataFrame) -> bool:
    """Whether one query would define a watermark on a stream that has one, which Spark refuses."""
    return bool(_jvm(stream.sparkSession).isDefinedTwice(stream._jdf))


def _jvm(spark: SparkSession) -> Any:
    jvm: Any = spark.sparkContext._jvm
    return jvm.sluicegate.EventTime
