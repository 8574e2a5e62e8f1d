"""The columns of an edge as Spark's types, from the JSON it was made with."""

from __future__ import annotations

import json

from pyspark.sql.types import StructType

from sluicegate.errors import BadInput
from sluicegate.spark.edges.folder import FolderEdge


def schema_of(edge: FolderEdge) -> StructType:
    try:
        return StructType.fromJson(json.loads(edge.schema_json))
    except (ValueError, KeyError, TypeError) as problem:
        raise BadInput(f"edge {edge.folder.name!r} has no table schema: start its pipeline again") from problem
