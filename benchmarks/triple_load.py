"""A load that triples and falls back, on real Spark: the promise, and slot-seconds against static peak.

Usage: triple_load.py [SECONDS] [hops]

The chain of three operators that wait (7 ms a row in all), fused into one query, or with `hops` as three queries with
edges between them, which shows what a hop costs. Waiting needs no core, so k is real on a small machine; what bounds
it is what a task costs beside its rows.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path

from sluicegate.lab.apps import chain
from sluicegate.lab.running.load import triples
from sluicegate.lab.running.run_app import run_app
from sluicegate.spark.controller import Control
from sluicegate.spark.session import spark_session

CALM_PER_S = {True: 300.0, False: 150.0}
PROMISE = {True: "mean=3s", False: "mean=5s"}


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 240.0
    fused = "hops" not in sys.argv
    app = replace(chain.APP, build=partial(chain.build, fuse=fused))
    spark = spark_session("local[16]", {"spark.driver.memory": "1g"})
    control = Control(slo=(PROMISE[fused],), budget=16)
    with tempfile.TemporaryDirectory() as folder:
        told = run_app(app, spark, Path(folder) / "chain", triples(CALM_PER_S[fused]), seconds, control)
    spark.stop()
    for decision in told.decisions:
        print(f"{decision['at_s'] - told.ticks[0]['at_s']:5.0f} s  {decision['running']}  {decision['reasons'][0]}")
    print(
        f"promise {PROMISE[fused]}, kept for {told.kept_share:.1%} of {told.rows_in:,} rows; mean {told.mean_s:.2f} s"
    )
    if told.static_peak is not None:
        static = told.static_peak * told.seconds
        print(f"slot-seconds {told.slot_seconds:,.0f}, static peak ({told.static_peak} processors) {static:,.0f}")
        print(f"ratio {told.slot_seconds / static:.2f}")
    most = max(sum(tick["running"].values()) for tick in told.ticks)
    print(f"most held at once {most}; against holding those all the time {told.slot_seconds / most / told.seconds:.2f}")
    print(f"answer exact: {told.answer.exact if told.answer else None}, {told.rescales} moves")


if __name__ == "__main__":
    main()
