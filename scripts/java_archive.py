"""Archive the classes that Spark loads when it starts and runs a first batch: `java_archive.py FILE`.

A test run starts Spark's driver a hundred times. With such an archive (Java's class data sharing) a start takes half
the processor time. Java ignores an archive that does not fit (of another jar, of another Java), so the tests pass
without one too.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import functions as F

from sluicegate import Pipeline, spark_session
from sluicegate.spark.cluster.java import QUICK_JAVA
from sluicegate.spark.pipeline.runtime import start

_PATIENCE_S = 120.0


def main(archive: Path) -> None:
    archive.unlink(missing_ok=True)
    os.environ["SPARK_SUBMIT_OPTS"] = f"{QUICK_JAVA} -XX:ArchiveClassesAtExit={archive} -Xlog:disable -Xlog:all=off"
    with tempfile.TemporaryDirectory() as folder:
        count_words(Path(folder) / "run")
    java: Any = SparkContext._gateway
    java.shutdown()
    java.proc.stdin.close()  # by which Java knows that it should end; it writes the archive then
    try:
        java.proc.wait(_PATIENCE_S)
    except subprocess.TimeoutExpired:
        java.proc.kill()
    if not archive.exists():
        sys.exit("Java has written no archive")


def count_words(folder: Path) -> None:
    """A pipeline with Python, state and edges, a few batches of it: what most tests load."""
    pipeline = Pipeline("words")
    lines = pipeline.source("lines", "text string")
    words = pipeline.operator("split", lambda rows: rows.select(F.explode(F.split("text", " ")).alias("word")), lines)
    same = pipeline.operator("same", lambda rows: rows.mapInArrow(lambda batches: batches, rows.schema), words)
    pipeline.sink("counts", pipeline.operator("count", lambda rows: rows.groupBy("word").count(), same, stateful=True))
    spark = spark_session("local[2]", {"spark.driver.memory": "1g"})
    with start(pipeline, spark, folder) as running:
        for _ in range(3):
            running.feed("lines").append(pa.table({"text": ["to be or not to be"]}))
            running.drain()
        running.read("count").collect()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
