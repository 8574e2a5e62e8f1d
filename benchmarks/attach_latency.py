"""The latency that attach estimates from reports, against the true latency of every row by its own time of birth.

    python benchmarks/attach_latency.py [--seconds 40]

Cells of files (plain, behind a read limit, with a trigger interval) and of the rate source; each runs alone. True: from
a row's birth to the moment its batch is in the sink (the end that the estimate has too is Spark's report of it). The
error is that of the mean and of the p95 over a cell; the figure is the median of all. Aim: at most 10%.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import results
from sluicegate.runlog.layout import Layout
from sluicegate.spark.attach.observing import QueryObserver
from sluicegate.spark.pipeline.observing import sojourn_of
from sluicegate.spark.session import spark_session

Source = Callable[[SparkSession, Path], DataFrame]


@dataclass(frozen=True, slots=True)
class Cell:
    """One query. ``source`` gives a column ``born`` in seconds."""

    name: str
    source: Source
    every: str = "0 seconds"


def files(most: int) -> Source:
    return lambda spark, folder: (
        spark.readStream.schema("born double").option("maxFilesPerTrigger", most).json(str(folder))
    )


def rate(spark: SparkSession, _: Path) -> DataFrame:
    rows = spark.readStream.format("rate").option("rowsPerSecond", 100).load()
    return rows.select(F.col("timestamp").cast("double").alias("born"))


CELLS = (
    Cell("files", files(1000)),
    Cell("files behind a limit", files(2), "2 seconds"),
    Cell("files every 3 s", files(1000), "3 seconds"),
    Cell("rate", rate),
    Cell("rate every 3 s", rate, "3 seconds"),
)


def feed(folder: Path, ended: threading.Event) -> None:
    """A file every quarter of a second; its rows are born as it is written."""
    number = 0
    while not ended.wait(0.25):
        draft = folder.parent / "draft"
        draft.write_text((json.dumps({"born": time.time()}) + "\n") * 25, encoding="utf-8")
        draft.rename(folder / f"{number:06d}.json")
        number += 1


def run(spark: SparkSession, record: Path, cell: Cell, seconds: float) -> dict[str, float]:
    base, ended = Path(tempfile.mkdtemp(prefix="attach-latency-")), threading.Event()
    (base / "in").mkdir()
    thread = threading.Thread(target=feed, args=(base / "in", ended), daemon=True)
    thread.start()
    name, true = cell.name.replace(" ", "_"), dict[int, list[float]]()

    def take(rows: DataFrame, batch: int) -> None:
        born = [row["born"] for row in rows.collect()]
        now_s = time.time()
        true[batch] = [now_s - at_s for at_s in born]

    states = cell.source(spark, base / "in").withColumn("k", F.expr("cast(born * 10 as long) % 20"))
    writer = states.writeStream.queryName(name).option("checkpointLocation", str(base / "checkpoint"))
    query = writer.trigger(processingTime=cell.every).foreachBatch(take).start()
    time.sleep(seconds)
    spark.sparkContext.setLogLevel("OFF")  # a batch in Python that is stopped midway logs pages of regular expressions
    query.stop()
    ended.set()
    time.sleep(1.0)
    observer = QueryObserver.of(Layout(record), name)
    observer.observe(time.time(), False, None)
    # the first batches are older than anything that is known of the source
    kept = [record for record in observer.records if record.batch >= 3 and record.batch in true]
    seen = sojourn_of(kept)
    if seen is None:
        raise SystemExit(f"{cell.name}: no batch was published in {seconds:g} s, give more --seconds")
    truth = sorted(age for one in kept for age in true[one.batch])
    shutil.rmtree(base, ignore_errors=True)
    true_mean_s, true_p95_s = statistics.fmean(truth), truth[int(0.95 * len(truth))]
    return {
        "true_mean_s": round(true_mean_s, 3),
        "true_p95_s": round(true_p95_s, 3),
        "mean_error": round(abs(seen.mean_s / true_mean_s - 1), 3),
        "p95_error": round(abs((seen.p95_s or 0.0) / true_p95_s - 1), 3),
    }


def main(seconds: float) -> None:
    record = Path(tempfile.mkdtemp(prefix="attach-record-"))
    spark = spark_session(
        "local[2]",
        {
            "spark.driver.memory": "1g",
            "spark.plugins": "sluicegate.attach.SluicegatePlugin",
            "spark.sluicegate.folder": str(record),
            "spark.sluicegate.controller": "none",
            "spark.sql.shuffle.partitions": "2",
        },
    )
    cells = {cell.name: run(spark, record, cell, seconds) for cell in CELLS}
    spark.stop()
    shutil.rmtree(record, ignore_errors=True)
    errors = [cell[what] for cell in cells.values() for what in ("mean_error", "p95_error")]
    for name, cell in cells.items():
        results.record("attach_latency", source=name, seconds=seconds, **cell)
        print(name, cell)
    print(f"median error {statistics.median(errors):.1%}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=40.0)
    main(**vars(parser.parse_args()))
