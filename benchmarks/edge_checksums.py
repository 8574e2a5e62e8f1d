"""What checksums cost an edge: the same rows with and without them, taking turns in one run.

Usage: edge_checksums.py [MILLION_ROWS]

Rows a second of batch time (``edge_throughput``); the feed's own sums are computed outside of it. What bounds both:
decoding and encoding Parquet.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from statistics import median
from unittest.mock import patch

import pyarrow as pa
from pyspark.sql import SparkSession

import results
from edge_throughput import BATCHES, made, through_edges
from sluicegate.spark.session import spark_session

PAIRS = 6
_PLAIN = ("spark.sql.parquet.output.committer.class", "org.apache.parquet.hadoop.ParquetOutputCommitter")


def main() -> None:
    rows = int(float(sys.argv[1]) * 1e6) if len(sys.argv) > 1 else 12_000_000
    spark, table, ratios = spark_session("local[2]", {"spark.driver.memory": "3g"}), made(rows // BATCHES), []
    with tempfile.TemporaryDirectory() as folder:
        through_edges(spark, Path(folder) / "warm", table)
        for i in range(PAIRS):
            if i % 2:
                checked, plain = through_edges(spark, Path(folder) / f"on{i}", table), without(spark, folder, i, table)
            else:
                plain, checked = without(spark, folder, i, table), through_edges(spark, Path(folder) / f"on{i}", table)
            ratios.append(checked / plain)
            results.record("checksums", rows=rows, with_per_s=checked, without_per_s=plain, ratio=ratios[-1])
            print(f"with checksums {checked:12,.0f} rows/s, without {plain:12,.0f}: {ratios[-1]:.3f}")
    spark.stop()
    print(f"median {median(ratios):.3f}, from {min(ratios):.3f} to {max(ratios):.3f}")


def without(spark: SparkSession, folder: str, number: int, table: pa.Table) -> float:
    with (
        patch("sluicegate.spark.pipeline.batch_files._COMMITTER", _PLAIN),
        patch("sluicegate.spark.edges.feed.sums_of", lambda path: (None, None)),
    ):
        return through_edges(spark, Path(folder) / f"off{number}", table)


if __name__ == "__main__":
    main()
