"""Refuses columns that the files of an edge cannot hold, before the edge is made with them.

Spark says so only when the first batch is written; the edge has these columns by then, and keeps to them.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from sluicegate.errors import BadInput


def check_storable(spark: SparkSession, whose: str, schema: StructType) -> None:
    """``whose`` is what has these columns: "operator 'split'"."""
    if not schema.fields:
        raise BadInput(f"{whose} has no column: give at least one")
    exact = spark.conf.get("spark.sql.caseSensitive") == "true"
    counted = Counter(name if exact else name.lower() for name in schema.names)
    for name in schema.names:
        if counted[name if exact else name.lower()] > 1:
            raise BadInput(f"{whose} has column {name!r} more than once (Spark ignores case): rename it")
    if not _is_hollow(schema) and _is_storable(spark, schema):
        return
    for field in schema.fields:
        if _is_hollow(field.dataType) or not _is_storable(spark, field.dataType):
            raise BadInput(
                f"{whose} has column {field.name!r} of type {field.dataType.simpleString()}, which Parquet files "
                "cannot hold: turn it into another type"
            )


def _is_storable(spark: SparkSession, kind: DataType) -> bool:
    jvm: Any = spark._jvm
    session: Any = spark._jsparkSession
    parquet = jvm.org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat()
    return bool(parquet.supportDataType(session.parseDataType(kind.json())))


def _is_hollow(kind: DataType) -> bool:
    """Whether a type is, or holds, a structure without fields."""
    if isinstance(kind, StructType):
        return not kind.fields or any(_is_hollow(field.dataType) for field in kind.fields)
    if isinstance(kind, ArrayType):
        return _is_hollow(kind.elementType)
    return isinstance(kind, MapType) and (_is_hollow(kind.keyType) or _is_hollow(kind.valueType))
