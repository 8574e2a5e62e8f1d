"""What Python tasks cost: Spark's own daemon against sluicegate's, in one run.

Usage: python_tasks.py [SECONDS_EACH]

The chain of three Arrow functions that wait, in one query at k = 3, then 12: what a batch lasts beyond its rows, at
first (fresh processes) and then usually. What bounds it on two cores: 36 processes have to be woken, fed and read.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

from sluicegate.lab.apps import chain
from sluicegate.lab.running.feeding import Feeder
from sluicegate.lab.running.load import constant
from sluicegate.spark.pipeline.runtime import start
from sluicegate.spark.session import SETTINGS, spark_session

MODULE = "spark.python.daemon.module"
LOW, HIGH, RATE_PER_S = 3, 12, 250.0


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    found = {
        name: measured(module, seconds)
        for name, module in (("Spark", "pyspark.daemon"), ("sluicegate", SETTINGS[MODULE]))
    }
    for name, (first_s, usual_s) in found.items():
        print(f"{name:9} first batch at k = {HIGH}: {first_s:.2f} s beyond its rows, then {usual_s:.2f} s")
    (first_a, usual_a), (first_b, usual_b) = found["Spark"], found["sluicegate"]
    print(f"ratio first {first_a / first_b:.1f}, then {usual_a / usual_b:.1f}")


def measured(module: str, seconds: float) -> tuple[float, float]:
    spark = spark_session("local[16]", {"spark.driver.memory": "1g", MODULE: module})
    each_s = sum(chain.WAITS_MS.values()) / 1e3
    with tempfile.TemporaryDirectory() as folder, start(chain.build(fuse=True), spark, Path(folder) / "run") as running:
        (name,) = [node.name for node in running.graph.nodes]
        feed = running.feed("calls")
        for _ in range(8):
            feed.append(chain.rows("calls", feed.rows, 20))
            running.drain()
        running.set_processors({name: LOW})
        feeder = Feeder(chain.APP, {"calls": feed}, constant(RATE_PER_S), seconds)
        feeder.start()
        time.sleep(seconds / 3)
        running.set_processors({name: HIGH})
        while not feeder.join(1.0):
            running.check()
        running.drain()
        time.sleep(1.0)
        beyond = [r.duration_s - r.rows * each_s / HIGH for r in running.records(name) if r.processors == HIGH]
    spark.stop()
    return beyond[0], statistics.median(beyond[3:])


if __name__ == "__main__":
    main()
