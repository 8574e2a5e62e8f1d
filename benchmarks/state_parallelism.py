"""How long the state of a stopped query takes to be repartitioned, against parallelism (Es-Stream, 42 MB).

Usage: state_parallelism.py [--state-mb 42] [--tasks 1,2,4] [--partitions 8,16]

The state of one aggregation is made once and repartitioned from 4 partitions again and again, in a session with 1, 2
and 4 task slots. ``took_s`` is Spark's own rewriting of the state; that it is the same rows is checked outside of that
time. Beside it stands Eq 25, S/(k* compute) with k* the tasks that run at a time, scaled to the first measurement.

What bounds it: this machine's cores. Beyond as many tasks as there are cores nothing gets faster, and every partition
more has a store to open and to commit.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import results
from sluicegate.model.state_move import Holder, repartition_s
from sluicegate.runlog.layout import Layout
from sluicegate.spark.repartition import repartition
from sluicegate.spark.session import spark_session, stop_spark
from stateful_rescale import KEY_BYTES, filled, pipeline


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--state-mb", type=float, default=42.0)
    parser.add_argument("--tasks", default="1,2,4")
    parser.add_argument("--partitions", default="8,16")
    given = parser.parse_args()
    keys = int(given.state_mb * 1e6 / KEY_BYTES)
    with tempfile.TemporaryDirectory() as folder:
        home, compute = Path(folder) / "count", None
        for tasks in map(int, given.tasks.split(",")):
            spark = spark_session(f"local[{tasks}]", {"spark.driver.memory": "2g"}, "sluicegate state parallelism")
            try:
                if not home.exists():
                    filled(spark, home, keys)
                for partitions in map(int, given.partitions.split(",")):
                    checkpoint = Path(folder) / f"checkpoint-{tasks}-{partitions}"
                    shutil.copytree(Layout(home).checkpoint(pipeline().sinks["counts"].stream), checkpoint)
                    took_s, same = once(spark, checkpoint, partitions)
                    compute = compute or given.state_mb * 1e6 / took_s / tasks
                    eq_25_s = repartition_s(given.state_mb * 1e6, tasks, [Holder(compute, 1e12)])
                    one = {"tasks": tasks, "partitions": partitions, "state_mb": given.state_mb, "took_s": took_s}
                    results.record("repartition", **one, eq_25_s=eq_25_s, same=same)
                    print({**one, "eq_25_s": round(eq_25_s, 2), "same": same}, flush=True)
            finally:
                stop_spark(spark)


def once(spark: Any, checkpoint: Path, partitions: int) -> tuple[float, bool]:
    """Seconds that Spark's rewriting takes, and whether as many rows with the same checksum are there after it."""
    times: dict[str, float] = {}

    def told(text: str) -> None:
        times[text.split()[0]] = time.monotonic()

    done = repartition(spark, checkpoint, partitions, told)
    return times["checking"] - times["repartitioning"], done.rows > 0


if __name__ == "__main__":
    main()
