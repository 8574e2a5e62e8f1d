"""Sleeps for each row, like a call to a service: it needs no core, so k scales even on a small machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame


def after_waiting(rows: DataFrame, wait_ms: float) -> DataFrame:
    """The same rows, with a sleep of ``wait_ms`` for each."""

    def wait(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            time.sleep(batch.num_rows * wait_ms / 1e3)
            yield batch

    return rows.mapInArrow(wait, rows.schema)


def later(work: Callable[[DataFrame], DataFrame], wait_ms: float) -> Callable[[DataFrame], DataFrame]:
    """An operator that sleeps ``wait_ms`` for each row before ``work``; ``work`` itself if that is 0."""
    return (lambda rows: work(after_waiting(rows, wait_ms))) if wait_ms else work
