"""Reads the rows kept on an edge as a batch DataFrame: exactly those that manifests name."""

from __future__ import annotations

import json
import math
import time
from itertools import accumulate
from pathlib import Path

from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql.types import StructType

from sluicegate.errors import BadInput
from sluicegate.runlog.files import read_if_there
from sluicegate.runlog.layout import Layout
from sluicegate.spark.edges.edge import DurableEdge
from sluicegate.spark.edges.file_sums import check_size
from sluicegate.spark.edges.folder import FolderEdge
from sluicegate.spark.edges.manifest import Manifest
from sluicegate.spark.edges.spoiled import file_spoiled


def read_stream(spark: SparkSession, folder: Path, stream: str) -> DataFrame:
    """A DataFrame of the rows that a kept stream holds now; the pipeline may be running or not.

    Expired rows are not listed, but stay on disk for a while: a query that began before can finish.
    """
    # resolved: sums are found by the path as Spark spells it, which has neither .. nor a relative start
    edge = FolderEdge(Layout(folder.resolve()).edge(stream))
    schema = schema_of(edge)
    files = {}
    for manifest in listed(edge, _keep_s(folder, stream)):
        for file in manifest.files:
            check_size(edge.folder, manifest.number, file)  # its contents are checked as they are read
            files[str(edge.folder / file.path)] = file
    if not files:
        return spark.createDataFrame([], schema)
    sums = {path: [file.size, file.sums] for path, file in files.items() if file.sums is not None}
    reader = exact_paths(spark).format("sluicegate.EdgeParquet").option("sums", json.dumps(sums))
    return reader.schema(schema).load(list(files))


def listed(edge: FolderEdge, keep_s: float | None) -> list[Manifest]:
    """The manifests that have not expired; one from when the clock was set back is as old as the one before it."""
    since_s = -math.inf if keep_s is None else time.time() - keep_s
    found = edge.whole()
    published_s = accumulate((manifest.published_s for manifest in found), max)
    return [manifest for manifest, at_s in zip(found, published_s, strict=True) if at_s >= since_s]


def _keep_s(folder: Path, stream: str) -> float | None:
    """How long the pipeline in ``folder`` keeps a stream's rows; ``None``: forever."""
    path = Layout(folder).description
    try:
        kept: dict[str, float] = json.loads(read_if_there(path) or "{}").get("keep_s", {})
        return kept.get(stream)
    except (ValueError, AttributeError):
        raise file_spoiled("the pipeline's description", path, "is not what was written") from None


def exact_paths(spark: SparkSession) -> DataFrameReader:
    """A reader that takes paths literally, and all of them whatever the session says of files that cannot be read.

    Spark would treat a folder named run[1] as a glob pattern.
    """
    literal = spark.read.option("__globPaths__", "false")
    return literal.option("ignoreCorruptFiles", "false").option("ignoreMissingFiles", "false")


def schema_of(edge: DurableEdge) -> StructType:
    """The columns of an edge as Spark's types, from the JSON it was made with."""
    try:
        return StructType.fromJson(json.loads(edge.schema_json))
    except (ValueError, KeyError, TypeError) as problem:
        raise BadInput(f"edge {edge.folder.name!r} has no table schema: start its pipeline again") from problem
