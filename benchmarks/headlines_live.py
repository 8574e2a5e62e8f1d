"""Headline comparisons of DRS and Mc-Stream, on real Spark, as far as one machine allows.

Usage: headlines_live.py [drs] [mc-stream] [--seconds S]

DRS (its figures 6 and 7): of all ways to split K processors over a chain, is the one that its queueing model picks the
fastest, and is the order of six as predicted? Mc-Stream: one of three instances is three times slower than the others,
as on a slow node; rows split in proportion to measured speed, against equal parts as Spark's default has them.

What bounds it: one machine has no network between its nodes, so what placement saves there does not show. The waits of
the operators need no core, so k is real; what a task costs beside its rows is that of two busy cores.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from sluicegate.cli.fidelity import show
from sluicegate.cli.out import console
from sluicegate.lab.apps import chain
from sluicegate.lab.fidelity.fidelity import measure_fidelity
from sluicegate.lab.running.app import Answer, App, compare
from sluicegate.lab.running.load import constant
from sluicegate.lab.running.run_app import run_app
from sluicegate.policy.demand import situation_at, stations_of
from sluicegate.policy.papers.drs import assign_processors
from sluicegate.spark.controller import Control
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.session import spark_session

WAITS_MS = {"parse": 6.0, "enrich": 12.0, "store": 3.0}
RATE_PER_S, TOTAL = 130.0, 11
INSTANCES, UNEVEN_PER_S = 3, 300.0


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("which", nargs="*", default=["drs", "mc-stream"])
    parser.add_argument("--seconds", type=float, default=30.0)
    given = parser.parse_args()
    spark = spark_session("local[16]", {"spark.driver.memory": "1g"}, "sluicegate headlines")
    if "drs" in given.which:
        best_split(spark, given.seconds)
    if "mc-stream" in given.which:
        uneven_instances(spark, given.seconds)
    spark.stop()


def best_split(spark: SparkSession, seconds: float) -> None:
    app = replace(chain.APP, build=partial(chain.build, waits_ms=WAITS_MS), calm_per_s=RATE_PER_S / 3)
    with tempfile.TemporaryDirectory() as folder:
        found = measure_fidelity(app, spark, Path(folder) / "run", RATE_PER_S, 6, seconds, print, total=TOTAL)
    show(found, console())
    queues = tuple(replace(o, batch=None) for o in found.law.topology.operators)
    stations = stations_of(situation_at(found.law.topology.with_operators(queues), RATE_PER_S))
    picked = assign_processors(stations, TOTAL).tolist()
    ranked = sorted(found.settings, key=lambda one: one.measured.mean_s)
    places = [list(one.processors.values()) for one in ranked]
    predicted = min(found.settings, key=lambda one: one.predicted.mean_s)
    print(f"of {TOTAL} processors M/M/k (DRS) picks {picked}, the twin {list(predicted.processors.values())}")
    print(f"measured from fastest to slowest: {places}")


def one_is_slow(rows: DataFrame) -> DataFrame:
    """Each row waits 4 ms, at the first instance three times as long."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        slow = context is not None and context.partitionId() == 0
        for batch in batches:
            time.sleep(batch.num_rows * (0.012 if slow else 0.004))
            yield batch

    return rows.mapInArrow(work, "id long")


def uneven_pipeline() -> Pipeline:
    pipeline = Pipeline("uneven")
    pipeline.sink("out", pipeline.operator("work", one_is_slow, pipeline.source("rows", "id long")))
    return pipeline


def numbered(source: str, first: int, count: int) -> pa.Table:
    return pa.table({"id": pa.array(np.arange(first, first + count), pa.int64())})


def every_id_once(fed: Mapping[str, int], sinks: Mapping[str, DataFrame]) -> Answer:
    found: dict[object, int] = {row["id"]: int(row["count"]) for row in sinks["out"].groupBy("id").count().collect()}
    return compare(dict.fromkeys(range(fed["rows"]), 1), found, sum(found.values()))


def uneven_instances(spark: SparkSession, seconds: float) -> None:
    """Both hold three instances all the time; only who gets how many rows differs."""
    app = App("uneven", uneven_pipeline, numbered, every_id_once, calm_per_s=UNEVEN_PER_S)
    begins = {"work": INSTANCES}
    means: dict[str, float] = {}
    for told, dry in (("equal parts", True), ("parts by speed", False)):
        control = Control("sluicegate", ("mean=1s",), INSTANCES, dry_run=dry)
        with tempfile.TemporaryDirectory() as folder:
            home, load = Path(folder) / "run", constant(UNEVEN_PER_S)
            outcome = run_app(app, spark, home, load, 2 * seconds, control, processors=begins)
        assert outcome.mean_s is not None
        assert outcome.answer is not None
        means[told] = outcome.mean_s
        print(f"{told}: mean {outcome.mean_s:.2f} s, p95 {outcome.p95_s:.2f} s, exact {outcome.answer.exact}")
    equal, by_speed = means.values()
    print(f"mean with parts by speed / with equal parts: {by_speed / equal:.2f}")


if __name__ == "__main__":
    main()
