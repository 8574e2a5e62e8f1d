"""The backup interval of a stateful operator (the pace of its batches) against the time a failure takes to repair.

Usage: backup_interval.py [--paces 0.5,2,4,below,above] [--rounds 1] [--within MINUTES]

Rows flow into an operator with state that waits 2 ms a row. At each pace its query fails once in the middle of a batch;
the repair is over when all rows that had been fed by then are committed. Beside it stands what Eq 26 gives for that
pace and load: CI lambda/(k mu), to which a query's own start comes on top. Batches a second are what shorter paces
cost. ``below`` and ``above`` are Es-Stream's own interval on a node below and above alpha (which is set to 100% and to
1% for it), with repairs bounded to 1 s.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import results
from sluicegate.errors import StillWaiting
from sluicegate.model.state_move import Replay, repair_s
from sluicegate.spark.cluster.waiting import wait_until
from sluicegate.spark.controller import Control
from sluicegate.spark.edges.backlog import Head
from sluicegate.spark.edges.folder import FolderEdge
from sluicegate.spark.edges.offsets import committed
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.runtime import Running, start
from sluicegate.spark.session import spark_session, stop_spark
from sluicegate.spark.supervisor import Supervisor
from turns import Turns, end_as_by_ctrl_c

_RATE_PER_S, _ROW_S, _CALM_S, _PATIENCE_S = 150.0, 0.002, 8.0, 90.0
_WARM_ROUNDS = (20, 20, 60, 300, 60, 300)
"""Rows of batches before the load: they compile, and show what a row costs, by which Eq 26 bounds the interval."""
_ALPHA = {"below": 1.0, "above": 0.01}
"""The load of a node beyond which Es-Stream backs up as rarely as the bound on repair allows."""


def pipeline(poison: Path) -> Pipeline:
    def works(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for part in parts:
            time.sleep(_ROW_S * part.num_rows)
            if poison.exists():
                poison.unlink()
                raise OSError("this task is gone")
            yield part

    def once(rows: DataFrame) -> DataFrame:
        return rows.dropDuplicates(["id"]).mapInArrow(works, "id long")

    made = Pipeline("backup")
    rows = made.source("rows", "id long")
    made.sink("out", made.operator("once", once, rows, stateful=True, key_groups=2, mode="append"))
    return made


class Feeding(threading.Thread):
    """Rows at a steady rate until told to end."""

    def __init__(self, running: Running) -> None:
        super().__init__(daemon=True)
        self.feed, self.ended = running.feed("rows"), threading.Event()

    def run(self) -> None:
        began, before = time.monotonic(), self.feed.rows
        while not self.ended.wait(0.1):
            due = before + int((time.monotonic() - began) * _RATE_PER_S) - self.feed.rows
            if due > 0:
                self.some(due)

    def some(self, rows: int) -> None:
        ids = range(self.feed.rows, self.feed.rows + rows)
        self.feed.append(pa.table({"id": pa.array(ids, pa.int64())}))


def behind(running: Running, head: Head, rows: int) -> bool:
    """Whether some of the first ``rows`` rows are not committed yet."""
    head.look()
    taken = committed(running.layout.checkpoint("once")).get("rows", 0)
    return head.rows_before(taken) < rows


def deciding(running: Running, pace: str) -> AbstractContextManager[object]:
    """A fixed pace, or a controller that sets it."""
    if pace not in _ALPHA:
        running.set_paces({"once": float(pace)})
        return nullcontext()
    options = ("backup_s=0.5", "repair_s=1", f"most_load={_ALPHA[pace]}")
    return Supervisor(running.layout, Control("es-stream", budget=1, interval_s=1.0, options=options))


def at_pace(spark: SparkSession, home: Path, pace: str) -> dict[str, Any]:
    poison = home.parent / f"poison-{home.name}"
    with start(pipeline(poison), spark, home, {"once": 1}) as running:
        feeding, head = Feeding(running), Head(FolderEdge(running.layout.edge("rows")))
        for rows in _WARM_ROUNDS:
            feeding.some(rows)
            running.drain(_PATIENCE_S)
        with deciding(running, pace):
            try:
                return failing_once(running, feeding, head, poison, pace)
            finally:
                feeding.ended.set()


def failing_once(running: Running, feeding: Feeding, head: Head, poison: Path, pace: str) -> dict[str, Any]:
    """Rows at a steady rate, a failure in the middle of a batch, and the time until it is repaired."""
    feeding.start()
    if pace in _ALPHA and not wait_until(lambda: running.plan().of("once").pace_s > 0, _PATIENCE_S, 0.2):
        raise StillWaiting(f"Es-Stream chose no interval within {_PATIENCE_S:g} s")
    time.sleep(2 * _CALM_S)
    pace_s = running.plan().of("once").pace_s
    batches = len([r for r in running.records("once") if r.published_s > time.time() - _CALM_S])
    poison.touch()
    if not wait_until(lambda: not poison.exists(), _PATIENCE_S, 0.01):
        raise StillWaiting(f"no task failed within {_PATIENCE_S:g} s")
    fed, began = feeding.feed.rows, time.monotonic()
    while behind(running, head, fed) and time.monotonic() - began < _PATIENCE_S:
        time.sleep(0.02)
    took_s = time.monotonic() - began
    feeding.ended.set()
    feeding.join()
    running.drain(_PATIENCE_S)
    found = sorted(int(row["id"]) for row in running.read("once").collect())
    exact = found == list(range(feeding.feed.rows))
    by_eq_26 = repair_s(max(pace_s, 0.01), [Replay(_RATE_PER_S, 1e6, 1 / _ROW_S)], 1e9)
    return {
        "asked": pace,
        "pace_s": pace_s,
        "by": f"es-stream, node {pace} alpha" if pace in _ALPHA else "fixed",
        "repair_s": round(took_s, 2),
        "eq_26_s": round(by_eq_26, 2),
        "batches_per_s": round(batches / _CALM_S, 2),
        "exact": exact,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--paces", default="0.5,2,4,below,above")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--within", type=float, default=float("inf"), help="minutes, for all of it")
    given = parser.parse_args()
    end_as_by_ctrl_c()
    before = Counter(str(line.get("asked")) for line in results.read("backup_interval"))
    turns = Turns(given.paces.split(","), before, given.rounds, given.within, 35.0)
    spark = spark_session("local[2]", {"spark.driver.memory": "1g"}, "sluicegate backup interval")
    try:
        with tempfile.TemporaryDirectory() as folder:
            for number, pace in enumerate(turns):
                with turns.playing(pace):
                    found = at_pace(spark, Path(folder) / f"run-{number}", pace)
                    results.record("backup_interval", **found)
                    print(found, flush=True)
    finally:
        stop_spark(spark)
    turns.end()


if __name__ == "__main__":
    main()
