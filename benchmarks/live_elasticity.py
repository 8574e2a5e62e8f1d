"""A load that rises and falls, on real Spark, under sluicegate, the papers' policies and what users pick.

Usage: live_elasticity.py [--apps a,b] [--policies x,y] [--loads plateau,burst] [--seconds S] [--runs N] [--minutes M]

Every application runs under every policy in the same session, one after the other, at the same load and from the same
start: one task an operator. Recorded: for how many rows the promise was kept, what it cost against holding a plan for
the peak all the time (sluicegate's plan by the costs of the first run, the same for all policies of an application),
how often k moved, and the most processors held. ``fixed-peak`` holds that plan from the start and never moves.

What was measured fewest times is measured next, until every cell has ``--runs`` of them or ``--minutes`` are over: what
one call leaves another fills in (`bench.py --only live --keep`). A cell takes its load and some 17 s around it, so one
run each of five applications and twelve policies is about 50 minutes (`--runs 1`).

Time is a hundredth: cycles and T_ra of ten minutes are 6 s, and the peers' windows, waits and periods are shortened by
the same factor (`options_of`), or none of them would move within a run. A peer that looks at batches decides every 3 s,
as a batch is not shortened. KEDA and DStreams are told what their users would have tuned them to: the lag that the plan
for the peak works off within a third of the promise, and the batch interval that keeps the promise.

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
from sluicegate.config.typed import goal_from
from sluicegate.errors import BadInput, SluicegateError
from sluicegate.lab.apps.catalogue import app_named
from sluicegate.lab.running.app import App
from sluicegate.lab.running.load import Load
from sluicegate.lab.running.outcome import Outcome
from sluicegate.lab.running.run_app import Surroundings, run_app
from sluicegate.spark.controller import Control
from sluicegate.spark.session import spark_session

APPS = "chain,fpd_waiting,shop,star_waiting,linear_waiting"
FIXED_PEAK = "fixed-peak"
POLICIES = (
    "sluicegate,drs,es-stream,mc-stream,uncertainty-7,mba,fixed-peak,ds2,flink-autoscaler,hpa,keda,dstreams,drs-batch"
)
SLOTS, CYCLE_S = 16, 6.0
FASTER = 600.0 / CYCLE_S
"""How many times shorter all times are than in production, where a cycle is ten minutes."""
_BY_BATCHES_S = 3.0
_WARM_ROUNDS = (20, 60, 120, 20)
"""Of an application that has run in this session: everything is compiled, the costs of a batch are still to be seen."""
_AROUND_S = 17.0
"""What a cell takes besides its load: start, warm-up, the controller's start, the last rows, the check."""
Cell = tuple[str, str, str]
"""Load, application, policy."""


def plateau(calm_per_s: float) -> Load:
    """Calm, three times as much for a good third of the run, calm; both ramps take a twelfth.

    >>> load = plateau(100.0)
    >>> load(0.1), round(load(0.24)), load(0.5), load(0.9)
    (100.0, 200, 300.0, 100.0)
    """

    def rate(share: float) -> float:
        ramp = min(max((share - 0.2) * 12.5, 0.0), max((0.73 - share) * 12.5, 0.0), 1.0)
        return calm_per_s * (1 + 2 * ramp)

    return rate


def burst(calm_per_s: float) -> Load:
    """Calm, but for a tenth of the run in which four times as much comes at once."""
    return lambda share: calm_per_s * (4.0 if 0.45 <= share < 0.55 else 1.0)


LOADS: dict[str, Callable[[float], Load]] = {"plateau": plateau, "burst": burst}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--apps", default=APPS)
    parser.add_argument("--policies", default=POLICIES)
    parser.add_argument("--loads", default="plateau")
    parser.add_argument("--seconds", type=float, default=32.0)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    asked = parser.parse_args()
    cells = [
        (load, app, policy)
        for load in asked.loads.split(",")
        for policy in asked.policies.split(",")
        for app in asked.apps.split(",")
    ]
    until, failed, warm = time.monotonic() + 60 * asked.minutes, list[str](), set[str]()
    spark = spark_session(f"local[{SLOTS}]", {"spark.driver.memory": "1g"}, "sluicegate live elasticity")
    while time.monotonic() < until and (cell := next_of(cells, asked.runs)) is not None:
        left_s = left(cells, asked.runs) * (asked.seconds + _AROUND_S)
        print(f"{' '.join(cell)}; about {left_s / 60:.0f} min for all that is left", flush=True)
        try:
            one_cell(spark, cell, asked.seconds, cell[1] in warm)
            warm.add(cell[1])
        except SluicegateError as problem:  # the others go on; it is named, and the exit code says so
            failed.append(f"{' '.join(cell)}: {problem}")
            cells.remove(cell)
            print(f"failed: {failed[-1]}", flush=True)
    spark.stop()
    if failed:
        raise SystemExit("; ".join(failed))


def next_of(cells: Sequence[Cell], runs: int) -> Cell | None:
    """The cell that was measured fewest times, the first of those; ``None`` once all have ``runs``."""
    seen = measured()
    fewest = min(cells, key=lambda cell: seen[cell], default=None)
    return fewest if fewest is not None and seen[fewest] < runs else None


def left(cells: Sequence[Cell], runs: int) -> int:
    """How many runs are still to be made."""
    seen = measured()
    return sum(max(runs - seen[cell], 0) for cell in cells)


def measured() -> Counter[Cell]:
    """How often each cell was run."""
    return Counter((line["load"], line["app"], line["policy"]) for line in results.read("live"))


def one_cell(spark: SparkSession, cell: Cell, seconds: float, warm: bool) -> None:
    load, name, policy = cell
    app = app_named(name)
    outcome = one_run(spark, app, policy, LOADS[load](app.calm_per_s), seconds, peak_of(load, name), warm)
    row = row_of(outcome, policy, peak_of(load, name) or outcome.peak_processors)
    results.record("live", load=load, **row)
    print(told(row), flush=True)


def peak_of(load: str, app: str) -> Mapping[str, int]:
    """The plan for the peak by the costs of the application's first run; nothing before it."""
    lines = [line for line in results.read("live") if (line["load"], line["app"]) == (load, app)]
    return next((line["peak"] for line in lines if line["peak"]), {})


def options_of(policy: str, app: App, load: Load, peak: Mapping[str, int]) -> tuple[str, ...]:
    """The options of a peer whose own times are those of production, and what its user would tune."""
    promise_s = min(goal_from([app.slo]).latency_bounds.values())
    peak_per_s = max(load(step / 100) for step in range(101))
    told: dict[str, dict[str, float]] = {
        "flink-autoscaler": {
            "window_s": 900 / FASTER,
            "stabilisation_s": 300 / FASTER,
            "catch_up_s": 1800 / FASTER,
            "restart_s": 300 / FASTER,
            "scale_down_s": 3600 / FASTER,
        },
        "hpa": {"period_s": 15 / FASTER, "stabilisation_s": 300 / FASTER},
        "keda": {
            "poll_s": 30 / FASTER,
            "cool_down_s": 300 / FASTER,
            "partitions": SLOTS,
            "lag_threshold_rows": peak_per_s * promise_s / 3 / max(peak.values(), default=1),
        },
        # a row waits for half an interval, then for a batch that may last one: 1.5 intervals are the promise
        "dstreams": {"every_s": max(60 / FASTER, _BY_BATCHES_S), "batch_interval_s": promise_s / 1.5},
    }
    return tuple(f"{name}={value:g}" for name, value in told.get(policy, {}).items())


def one_run(
    spark: SparkSession,
    app: App,
    policy: str,
    load: Load,
    seconds: float,
    peak: Mapping[str, int],
    warm: bool = False,
) -> Outcome:
    if policy in (FIXED_PEAK, "keda") and not peak:
        raise BadInput(f"{policy} needs a run of {app.name} under another policy first")
    fixed = policy == FIXED_PEAK
    options = options_of(policy, app, load, peak)
    name = "sluicegate" if fixed else policy
    control = Control(name, (app.slo,), SLOTS, cycle_s=CYCLE_S, dry_run=fixed, options=options)
    around = Surroundings(warm_up_rounds=_WARM_ROUNDS) if warm else None
    begins = peak if fixed else None
    with tempfile.TemporaryDirectory() as folder:
        return run_app(app, spark, Path(folder) / "run", load, seconds, control, around=around, processors=begins)


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
