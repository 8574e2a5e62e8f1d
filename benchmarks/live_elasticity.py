"""A load that rises and falls, on real Spark, under sluicegate, the papers' policies and what users pick.

Usage: live_elasticity.py [--apps a,b] [--policies x,y] [--loads triples,burst] [--seconds S] [--runs N] [--minutes M]

Every application runs under every policy in the same session, one after the other, at the same load and from the same
start: one task an operator. Recorded: for how many rows the promise was kept, what it cost against holding a plan for
the peak all the time (sluicegate's plan by the costs of the first run, the same for all policies of an application),
how often k moved, and the most processors held. ``fixed-peak`` holds that plan from the start and never moves.

What was measured fewest times is measured next, until every cell has ``--runs`` of them or ``--minutes`` are over: what
one call leaves another fills in (`bench.py --only live --keep`). Cycles and T_ra are 6 s: a run has no time for more.

What bounds it: applications that compute share two cores, so their k is worth less than it costs; those that wait show
k as a cluster would.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import results
from sluicegate.errors import BadInput, SluicegateError
from sluicegate.lab.apps.catalogue import app_named
from sluicegate.lab.running.app import App
from sluicegate.lab.running.load import Load, triples
from sluicegate.lab.running.outcome import Outcome
from sluicegate.lab.running.run_app import run_app
from sluicegate.spark.controller import Control
from sluicegate.spark.session import spark_session

APPS = "chain,fpd_waiting,shop,star_waiting,linear_waiting"
FIXED_PEAK = "fixed-peak"
POLICIES = (
    "sluicegate,drs,es-stream,mc-stream,uncertainty-7,mba,fixed-peak,ds2,flink-autoscaler,drs-batch,hpa,keda,dstreams"
)
SLOTS, CYCLE_S = 16, 6.0
Cell = tuple[str, str, str]
"""Load, application, policy."""


def burst(calm_per_s: float) -> Load:
    """Calm, but for a tenth of the run in which four times as much comes at once."""
    return lambda share: calm_per_s * (4.0 if 0.45 <= share < 0.55 else 1.0)


LOADS: dict[str, Callable[[float], Load]] = {"triples": triples, "burst": burst}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--apps", default=APPS)
    parser.add_argument("--policies", default=POLICIES)
    parser.add_argument("--loads", default="triples")
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    asked = parser.parse_args()
    cells = [
        (load, app, policy)
        for load in asked.loads.split(",")
        for policy in asked.policies.split(",")
        for app in asked.apps.split(",")
    ]
    until, failed = time.monotonic() + 60 * asked.minutes, list[str]()
    spark = spark_session(f"local[{SLOTS}]", {"spark.driver.memory": "1g"}, "sluicegate live elasticity")
    while time.monotonic() < until and (cell := next_of(cells, asked.runs)) is not None:
        try:
            one_cell(spark, cell, asked.seconds)
        except SluicegateError as problem:  # the others go on; it is named, and the exit code says so
            failed.append(f"{' '.join(cell)}: {problem}")
            cells.remove(cell)
            print(f"failed: {failed[-1]}", flush=True)
    spark.stop()
    if failed:
        raise SystemExit("; ".join(failed))


def next_of(cells: Sequence[Cell], runs: int) -> Cell | None:
    """The cell that was measured fewest times, the first of those; ``None`` once all have ``runs``."""
    seen = Counter((line["load"], line["app"], line["policy"]) for line in results.read("live"))
    fewest = min(cells, key=lambda cell: seen[cell], default=None)
    return fewest if fewest is not None and seen[fewest] < runs else None


def one_cell(spark: SparkSession, cell: Cell, seconds: float) -> None:
    load, name, policy = cell
    app = app_named(name)
    outcome = one_run(spark, app, policy, LOADS[load](app.calm_per_s), seconds, peak_of(load, name))
    row = row_of(outcome, policy, peak_of(load, name) or outcome.peak_processors)
    results.record("live", load=load, **row)
    print(told(row), flush=True)


def peak_of(load: str, app: str) -> Mapping[str, int]:
    """The plan for the peak by the costs of the application's first run; nothing before it."""
    lines = [line for line in results.read("live") if (line["load"], line["app"]) == (load, app)]
    return next((line["peak"] for line in lines if line["peak"]), {})


def one_run(spark: SparkSession, app: App, policy: str, load: Load, seconds: float, peak: Mapping[str, int]) -> Outcome:
    if policy == FIXED_PEAK and not peak:
        raise BadInput(f"{FIXED_PEAK} needs a run of {app.name} under another policy first")
    fixed = policy == FIXED_PEAK
    control = Control("sluicegate" if fixed else policy, (app.slo,), SLOTS, cycle_s=CYCLE_S, dry_run=fixed)
    begins = peak if fixed else None
    with tempfile.TemporaryDirectory() as folder:
        return run_app(app, spark, Path(folder) / "run", load, seconds, control, processors=begins)


def row_of(outcome: Outcome, policy: str, peak: Mapping[str, int]) -> dict[str, Any]:
    fixed = policy == FIXED_PEAK
    held = [sum(tick["observed" if fixed else "running"].values()) for tick in outcome.ticks]
    size = sum(peak.values())
    return {
        "app": outcome.app,
        "policy": policy,
        "promise": outcome.goal.latency_bounds,
        "kept": outcome.kept_share,
        "mean_s": outcome.mean_s,
        "p95_s": outcome.p95_s,
        "peak": dict(peak),
        "slot_seconds": size * outcome.seconds if fixed else outcome.slot_seconds,
        "slots_vs_peak": 1.0 if fixed else outcome.slot_seconds / size / outcome.seconds if size else None,
        "seconds": outcome.seconds,
        "rescales": 0 if fixed else outcome.rescales,
        "most_held": max(held, default=0),
        "exact": outcome.answer.exact if outcome.answer else None,
    }


def told(row: dict[str, Any]) -> str:
    share = "" if row["slots_vs_peak"] is None else f", {row['slots_vs_peak']:.2f} of a fixed peak"
    return f"{row['app']} {row['policy']}: kept {row['kept']:.1%}{share}, {row['rescales']} moves, exact {row['exact']}"


if __name__ == "__main__":
    main()
