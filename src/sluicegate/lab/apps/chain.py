"""A linear chain of three operators that sleep a fixed time for each row, like a call to a service.

Sleeping needs no core, so even on a small machine k processors do k times the work of one, as on a large cluster.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from sluicegate.lab.running.app import Answer, App, compare
from sluicegate.spark.pipeline.declaration import Pipeline

WAITS_MS = {"parse": 2.0, "enrich": 4.0, "store": 1.0}
_SCHEMA = "id long, hops int"


def waiting(wait_ms: float) -> Callable[[DataFrame], DataFrame]:
    """An operator that sleeps ``wait_ms`` per row and increments ``hops``."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            time.sleep(batch.num_rows * wait_ms / 1e3)
            hops = pa.array(np.asarray(batch.column(1)) + 1, pa.int32())
            yield pa.RecordBatch.from_arrays([batch.column(0), hops], names=["id", "hops"])

    return lambda rows: rows.mapInArrow(work, _SCHEMA)


def build(fuse: bool = False, waits_ms: Mapping[str, float] = WAITS_MS) -> Pipeline:
    pipeline = Pipeline("chain")
    stream = pipeline.source("calls", _SCHEMA)
    for name, wait_ms in waits_ms.items():
        stream = pipeline.operator(name, waiting(wait_ms), stream, fuse=fuse)
    pipeline.sink("done", stream)
    return pipeline


def rows(source: str, first: int, count: int) -> pa.Table:
    ids = np.arange(first, first + count, dtype=np.int64)
    return pa.table({"id": pa.array(ids), "hops": pa.array(np.zeros(count, dtype=np.int32))})


def check(fed: Mapping[str, int], sinks: Mapping[str, DataFrame]) -> Answer:
    """Check that every id comes out once, with all three hops."""
    found = sinks["done"].groupBy("id", "hops").count().collect()
    counts: dict[object, int] = {}
    for row in found:
        counts[row["id"]] = counts.get(row["id"], 0) + int(row["count"])
    answer = compare(dict.fromkeys(range(fed["calls"]), 1), counts, sum(counts.values()))
    skipped = sum(1 for row in found if row["hops"] != len(WAITS_MS))
    return replace(answer, exact=False, note=f"{skipped} rows skipped a hop") if skipped else answer


APP = App(
    name="chain",
    about="three operators in a row that wait for each row (2, 4 and 1 ms)",
    paper="model-driven (linear), DRS",
    build=build,
    rows=rows,
    check=check,
    calm_per_s=150.0,
    slo="mean=5s",
)
