"""The law of a node: cores that it predicts for operators that compute and share them, against cores measured.

Usage: fidelity_of_nodes.py [--seconds 14]

Two operators that compute, one query each, on two cores. The law learns from three settings (rate, k, pace), as the
loop does, look by look; then it predicts the cores of six others, and those run. Measured are the cores that the
driver's process and all below it kept busy. What bounds it: Java compiles while it learns, so the first settings cost
more than later ones; and where a setting needs more cores than there are, batches come later than their pace, and less
is measured than would be needed (marked: more than the machine has).
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import results
from sluicegate.domain import Cores, Observation
from sluicegate.lab.agreement import median_error, pairs_in_order
from sluicegate.model.node_law import NodeLaw, cores_needed
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.observing import Observer
from sluicegate.spark.pipeline.runtime import Running, start
from sluicegate.spark.session import spark_session

LOOK_S, SETTLE_S, FEED_S = 2.0, 4.0, 0.25


@dataclass(frozen=True, slots=True)
class Setting:
    """Rows a second, tasks of the two operators, and seconds from one batch to the next."""

    per_s: float
    first: int
    second: int
    pace_s: float

    @property
    def processors(self) -> dict[str, int]:
        return {"first": self.first, "second": self.second}


LEARNED = (Setting(150.0, 1, 1, 2.0), Setting(400.0, 2, 1, 2.0), Setting(250.0, 1, 3, 1.0))
PREDICTED = (
    Setting(100.0, 1, 1, 3.0),
    Setting(500.0, 2, 2, 2.0),
    Setting(200.0, 4, 2, 1.5),
    Setting(350.0, 1, 1, 2.5),
    Setting(300.0, 3, 3, 2.0),
    Setting(150.0, 2, 4, 1.0),
)


def computed(rows: DataFrame, steps: int) -> DataFrame:
    """Some tenths of a millisecond of arithmetic a row, that nothing can be spared of."""
    work = f"aggregate(sequence(1, {steps}), id * 1D, (sum, step) -> sum + sqrt(step + sum % 7))"
    return rows.withColumn("sum", F.expr(work)).where("sum > 0").select("id")


def pipeline() -> Pipeline:
    made = Pipeline("shared_cores")
    first = made.operator("first", lambda rows: computed(rows, 6000), made.source("rows", "id long"), fuse=False)
    made.sink("out", made.operator("second", lambda rows: computed(rows, 3000), first, fuse=False))
    return made


class Feed(threading.Thread):
    """Rows at ``per_s`` until ``ended``."""

    def __init__(self, running: Running) -> None:
        super().__init__(daemon=True)
        self.feed, self.per_s, self.rows, self.ended = running.feed("rows"), 0.0, 0, threading.Event()

    def run(self) -> None:
        while not self.ended.wait(FEED_S):
            count = round(self.per_s * FEED_S)
            if count:
                self.feed.append(pa.table({"id": pa.array(np.arange(self.rows, self.rows + count))}))
                self.rows += count


def played(running: Running, feed: Feed, observer: Observer, setting: Setting, seconds: float) -> list[Observation]:
    """Bring a setting about, and look at it every two seconds."""
    running.set_processors(setting.processors)
    running.set_paces(dict.fromkeys(setting.processors, setting.pace_s))
    feed.per_s = setting.per_s
    seen, until_s = [], time.monotonic() + seconds
    while time.monotonic() < until_s:
        time.sleep(LOOK_S)
        running.check()
        seen.append(observer.observe(time.time()))
    return seen


def busy_cores(seen: list[Observation]) -> float:
    """Mean of what the executors kept busy, once the setting was in force."""
    after = [one for one in seen if one.at_s >= seen[0].at_s + SETTLE_S]
    return statistics.fmean(sum(node.busy_cores for node in one.nodes) for one in after)


def predicted(cores: Cores, setting: Setting) -> float:
    arrivals: Mapping[str, float] = dict.fromkeys(setting.processors, setting.per_s)
    return cores_needed(cores, arrivals, setting.processors, dict.fromkeys(setting.processors, setting.pace_s))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=14.0)
    asked = parser.parse_args()
    spark = spark_session("local[8]", {"spark.driver.memory": "1g"})
    pairs: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory() as folder, start(pipeline(), spark, folder) as running:
        observer, feed, topology = Observer.of(running.layout, running.graph), Feed(running), running.graph.topology()
        law = NodeLaw.start(topology)
        feed.start()
        played(running, feed, observer, LEARNED[1], asked.seconds)  # compiles
        for setting in LEARNED:
            for seen in played(running, feed, observer, setting, asked.seconds + SETTLE_S):
                law = law.after(seen, topology)
        if law.cores is None:
            raise SystemExit("the law learned nothing: no node reported its cores")
        for setting in PREDICTED:
            told = predicted(law.cores, setting)
            measured = busy_cores(played(running, feed, observer, setting, asked.seconds))
            pairs.append((told, measured))
            line = {"k": f"{setting.first}:{setting.second}", "per_s": setting.per_s, "pace_s": setting.pace_s}
            beyond = told > law.cores.free
            results.record("node_fidelity", **line, predicted=told, measured=measured, beyond=beyond)
            print({**line, "predicted": round(told, 2), "measured": round(measured, 2)}, flush=True)
        feed.ended.set()
        feed.join()
        running.drain()
    spark.stop()
    right, number = pairs_in_order(pairs)
    print(f"median error {median_error(pairs):.1%}, {right} of {number} pairs in order")


if __name__ == "__main__":
    main()
