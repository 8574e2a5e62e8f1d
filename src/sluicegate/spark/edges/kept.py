"""Rows that stay on an edge, read as a plain table: exactly those that manifests name."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, DataFrameReader, SparkSession

from sluicegate.runlog.layout import Layout
from sluicegate.spark.edges.folder import FolderEdge
from sluicegate.spark.edges.schema import schema_of


def read_stream(spark: SparkSession, folder: Path, stream: str) -> DataFrame:
    """All rows now on a stream whose edge is kept; the pipeline may be running or not."""
    edge = FolderEdge(Layout(folder).edge(stream))
    schema = schema_of(edge)
    manifests = [edge.need(number) for number in edge.numbers()]
    paths = [str(edge.folder / file.path) for manifest in manifests for file in manifest.files]
    return exact_paths(spark).schema(schema).parquet(*paths) if paths else spark.createDataFrame([], schema)


def exact_paths(spark: SparkSession) -> DataFrameReader:
    """A reader that takes paths as they are: in a folder named run[1] Spark would see a pattern."""
    return spark.read.option("__globPaths__", "false")
