"""Predicted against measured mean sojourn on real Spark: a chain of operators that wait, at nine settings and more.

Usage: sojourn_prediction.py [SECONDS_A_SETTING]

Every operator waits a fixed time a row, so k processors do k times the work of one although the machine is small. A
short run tells o, c and mu of each operator and how its batches scatter; the micro-batch law, played out by the
pipeline's twin, predicts the mean sojourn of allocations that have not run yet; then they run. What bounds the error:
the machine's own moods between the run that is learned from and the runs that are compared.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path

from sluicegate.cli.fidelity import show
from sluicegate.cli.out import console
from sluicegate.lab.apps import chain
from sluicegate.lab.fidelity.fidelity import measure_fidelity
from sluicegate.spark.session import spark_session

WAITS_MS = {"parse": 6.0, "enrich": 12.0, "store": 3.0}
RATE_PER_S, SHARES = 130.0, (0.3, 0.6, 1.0)
PACE_S = 2.5
"""Where rows come in. Back to back, three queries keep two cores busy, and each slows the others down."""
SETTINGS = 10


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 30.0
    app = replace(chain.APP, build=partial(chain.build, waits_ms=WAITS_MS), calm_per_s=RATE_PER_S / 3)
    spark = spark_session("local[16]", {"spark.driver.memory": "1g"})
    with tempfile.TemporaryDirectory() as folder:
        found = measure_fidelity(
            app, spark, Path(folder) / "chain", RATE_PER_S, SETTINGS, seconds, print, pace_s=PACE_S, shares=SHARES
        )
    spark.stop()
    show(found, console())


if __name__ == "__main__":
    main()
