"""Policies that decide nodes side by side, live: a load of World Cup's shape, compressed, on a cluster of workers.

Usage: uncertainty_live.py [CAPACITY.mst.toml] [--trace CSV] [--window A:B] [--seconds S] [--policies a,b] [--runs N]
                           [--cycle S] [--interval S] [--full SHARE] [--keep DIR] [--within MINUTES]

CAPACITY (mst-curves/grep_waiting.mst.toml) is what `mst_curves.py` or `sluicegate profile APP --mst` wrote; it names
the application. Where there is no such file, 1, 2 and 4 nodes are measured first, in some four minutes. A cycle is
longer than a node takes to be warm, as in the paper (2 of 10 minutes there). The trace's rates (one a minute;
without one, a generated day with two matches) from minute A to B are averaged into steps of two seconds and scaled so
that the peak takes ``--full`` of what the largest measured size sustains: at 0.7 a curve that is taken as certain wants
a node less than one with its error. The minutes before the window, stretched like it, are the history that every
policy's forecaster begins with, as a planner has one: 100 steps of a tenth of a cycle, so that ARMA has its order from
the start. (A window that begins sooner leaves that much less history, and policies 4 to 7 decide by the present rate
until ARMA has 100 steps.) Every policy starts on one node, is told the same file, history, cycle and start-up time, and
runs on a cluster of its own. A policy takes the seconds of its load and some 45 s around them; the one that was
measured fewest times under these settings is the next, so that calls add up. Nothing is compared with the paper's
levels: there are few nodes here and not 128.

    on time   share of looks while the load comes at which less than ``LATE_S`` of it waits
    kept      share of rows in windows in which the promised latency was kept
    cost      node-seconds over those of the largest size held as long as the load comes
    backlog   rows that wait: the most, and the mean over looks
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np

import results
from sluicegate.config.capacity_file import CapacityFile, read_capacity_file
from sluicegate.config.trace_file import read_trace
from sluicegate.control.settings import Timing
from sluicegate.domain import Shape
from sluicegate.lab.apps.catalogue import app_named
from sluicegate.lab.profile.mst import MstSettings, measure_mst
from sluicegate.lab.reproduce.eight_workloads import Floats, world_cup
from sluicegate.lab.running.load import Load
from sluicegate.lab.running.outcome import Outcome
from sluicegate.lab.running.run_app import Surroundings, run_app
from sluicegate.model.mst import choose_model
from sluicegate.spark.act.nodes import LocalNodes
from sluicegate.spark.cluster.java import QUICK_JAVA
from sluicegate.spark.cluster.standalone import Cluster
from sluicegate.spark.controller import Control
from sluicegate.spark.ground import Ground
from sluicegate.spark.session import spark_session, stop_spark
from turns import Turns, end_as_by_ctrl_c

POLICIES = "uncertainty-0,uncertainty-3,uncertainty-4,uncertainty-5,uncertainty-7,sluicegate,recent-peak"
LATE_S, STEP_S, FULL = 5.0, 2.0, 0.7
"""Rows for so many seconds are late; a step of the load; the peak's share of what the largest size sustains."""
WINDOW, HISTORY_STEPS = "850:1030", 100
CAPACITY, MEASURED, MINUTES = Path("mst-curves/grep_waiting.mst.toml"), (1, 2, 4), 4.0
SECONDS, CYCLE_S, _AROUND_S = 120.0, 20.0, 45.0
"""Of a run, short enough for all seven in 20 minutes; of a cycle, some twice what a node takes to be warm; and what a
run takes besides its load: cluster, Spark, warm-up, the last rows, the check."""
_DAY = 1440


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("capacity", type=Path, nargs="?", default=CAPACITY)
    parser.add_argument("--trace", type=Path)
    parser.add_argument("--window", default=WINDOW, help="minutes of the trace")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--policies", default=POLICIES)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--cycle", type=float, default=CYCLE_S)
    parser.add_argument("--interval", type=float, default=1.0)
    parser.add_argument("--full", type=float, default=FULL)
    parser.add_argument("--keep", type=Path, help="where the decisions of each run are kept, by policy and run")
    parser.add_argument("--within", type=float, default=float("inf"), help="minutes, for all of it")
    given = parser.parse_args()
    end_as_by_ctrl_c()
    until_s = time.monotonic() + 60 * given.within
    file = curve_in(given.capacity)
    step_s = Timing(given.interval, 0.0, given.cycle).step_s(cycles=True)
    load, peak_per_s = load_of(given.trace, given.seconds, file, given.window, given.full)
    before = history_of(given.trace, given.seconds, file, given.window, step_s, given.full)
    print(
        f"{file.app}, {given.seconds:g} s, peak {peak_per_s:.0f} rows/s, cycle {given.cycle:g} s, {len(before)} steps "
        "of history",
        flush=True,
    )
    told = {"window": given.window, "cycle_s": given.cycle, "interval_s": given.interval, "full": given.full}
    told |= {"seconds": given.seconds, "history_steps": len(before)}
    seen = Counter(line["policy"] for line in alike({**told, "app": file.app}))
    left = (until_s - time.monotonic()) / 60
    turns = Turns(given.policies.split(","), seen, given.runs, left, given.seconds + _AROUND_S)
    found: dict[str, list[dict[str, Any]]] = {}
    for policy in turns:
        with turns.playing(policy):
            run = seen[policy] + len(found.get(policy, ()))
            keep = given.keep / f"{policy}-{run}" if given.keep else None
            one = played(policy, given.capacity, file, load, before, given.seconds, given.cycle, given.interval, keep)
            found.setdefault(policy, []).append(one)
            results.record("uncertainty_live", run=run, peak_per_s=round(peak_per_s, 1), **told, **one)
            print(shown(policy, [one]), flush=True)
    print("\nmedians")
    for policy, several in found.items():
        print(shown(policy, several))
    turns.end()


def alike(told: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What was recorded of runs with the same settings."""
    lines = results.read("uncertainty_live")
    return [line for line in lines if all(line.get(key) == value for key, value in told.items())]


def curve_in(path: Path) -> CapacityFile:
    """What nodes sustain, by the file; without one it is measured, as ``mst_curves.py`` does, and put there."""
    if path.exists():
        return read_capacity_file(path)
    app = path.name.removesuffix(".mst.toml")
    if path.name == app:
        raise SystemExit(f"{path}: no such file; name it APP.mst.toml, such as {CAPACITY}, to have it measured")
    path.parent.mkdir(parents=True, exist_ok=True)
    print(f"{path} is not there: measuring {app} on 1, 2 and 4 nodes", flush=True)
    settings = MstSettings(batch_s=1.0, delta=0.1, validate=False)
    return measure_mst(app_named(app), MEASURED, MINUTES, path.parent, lambda text: print(f"  {text}"), settings).file


def load_of(
    trace: Path | None, seconds: float, file: CapacityFile, window: str | None = None, full: float = FULL
) -> tuple[Load, float]:
    """The trace's shape over the run, at a peak that takes ``full`` of what the largest measured size sustains."""
    minutes, first, last = windowed(trace, window)
    steps = max(int(seconds / STEP_S), 1)
    rates, peak_per_s = scaled(averaged(minutes, first, last, min(steps, last - first)), file, full)
    return (lambda share: float(np.interp(share * (len(rates) - 1), np.arange(len(rates)), rates))), peak_per_s


def history_of(
    trace: Path | None, seconds: float, file: CapacityFile, window: str | None, step_s: float, full: float = FULL
) -> list[float]:
    """The rates of the steps before the window, up to ``HISTORY_STEPS`` of them, the newest last."""
    minutes, first, last = windowed(trace, window)
    a_step = (last - first) * step_s / seconds
    count = min(HISTORY_STEPS, int(first / a_step))
    if not count:
        return []
    peak = averaged(minutes, first, last, max(int(seconds / STEP_S), 1)).max()
    before = averaged(minutes, first - count * a_step, first, count)
    found: list[float] = (scaled(np.append(before, peak), file, full)[0][:-1]).tolist()
    return found


def windowed(trace: Path | None, window: str | None) -> tuple[Floats, int, int]:
    """The rates of all minutes, and the first and last of those that are played."""
    minutes: Floats = read_trace(trace).values if trace is not None else world_cup(_DAY)
    first, _, last = (window or f"0:{len(minutes)}").partition(":")
    return minutes, int(first), min(int(last), len(minutes))


def averaged(minutes: Floats, first: float, last: float, parts: int) -> Floats:
    """Means over parts of equal length, of minutes' parts too."""
    at, total = np.linspace(first, last, parts + 1), np.concatenate([[0.0], np.cumsum(minutes)])
    found: Floats = np.diff(np.interp(at, np.arange(len(total)), total)) * parts / (last - first)
    return found


def scaled(rates: Floats, file: CapacityFile, full: float) -> tuple[Floats, float]:
    model = choose_model(file.samples("training"), file.samples("validation"), largest=nodes_of(file))
    peak_per_s = full * model.mean_per_s(nodes_of(file))
    return rates * (peak_per_s / rates.max()), peak_per_s


def nodes_of(file: CapacityFile) -> int:
    return max(point.machines for point in file.points if point.use == "training")


def played(
    policy: str,
    capacity: Path,
    file: CapacityFile,
    load: Load,
    before_per_s: list[float],
    seconds: float,
    cycle_s: float,
    interval_s: float,
    keep: Path | None = None,
) -> dict[str, Any]:
    """One policy on a cluster of its own, from one node."""
    slots, most, app = file.slots_per_node or 1, nodes_of(file), app_named(file.app)
    began_s = time.time()
    with tempfile.TemporaryDirectory(prefix="sluicegate-live-") as folder:
        cluster, history = Cluster(Path(folder) / "cluster"), Path(folder) / "history.csv"
        lines = (f"{step},{rate:.3f}\n" for step, rate in enumerate(before_per_s))
        history.write_text("minute,rate\n" + "".join(lines), encoding="utf-8")
        try:
            status = cluster.up(1, slots, "1g")
            ground = ground_on(cluster, status.url, Shape(slots, 1, most))
            control = Control(
                policy,
                (app.slo,),
                slots * most,
                interval_s=interval_s,
                startup_s=file.startup_s or ground.startup_s,
                cycle_s=cycle_s,
                slots_per_node=slots,
                capacity=str(capacity.absolute()),
                history=str(history) if len(before_per_s) > 1 else None,
            )
            spark = spark_session(ground.master, ground.settings, f"sluicegate {policy}")
            try:
                around = Surroundings(ground.fleet(spark))
                outcome = run_app(app, spark, Path(folder) / "run", load, seconds, control, around=around)
                fleet = [json.loads(line) for line in (Path(folder) / "run" / "fleet.jsonl").open()]
                if keep is not None:
                    shutil.copytree(Path(folder) / "run", keep, ignore=_no_rows, dirs_exist_ok=True)
            finally:
                stop_spark(spark)
        finally:
            cluster.down()
    return figures(outcome, fleet, most) | {"policy": policy, "app": app.name, "wall_s": round(time.time() - began_s)}


def ground_on(cluster: Cluster, url: str, shape: Shape) -> Ground:
    """Executors of one node's slots, one at first."""
    slots = str(shape.slots_per_executor)
    settings = {
        "spark.driver.memory": "1g",
        "spark.executor.memory": "512m",
        "spark.executor.cores": slots,
        "spark.executor.instances": "1",
        "spark.cores.max": str(shape.slots),
        "spark.driver.extraJavaOptions": QUICK_JAVA,
        "spark.executor.extraJavaOptions": QUICK_JAVA,
        **cluster.settings(),
    }
    return Ground(url, settings, shape, LocalNodes(cluster, shape.slots_per_executor, "1g"))


def _no_rows(folder: str, names: list[str]) -> list[str]:
    """Of a run's folder its logs alone."""
    return [name for name in names if not name.endswith((".jsonl", ".json", ".log", ".csv"))]


def figures(outcome: Outcome, fleet: list[dict[str, Any]], most: int) -> dict[str, Any]:
    ticks = while_loaded(outcome.ticks)
    late = [float(t["backlog_rows"] or 0.0) > LATE_S * max(float(t["arrivals_per_s"]), 1.0) for t in ticks]
    nodes = [(float(t["at_s"]), int(t["executors"] or 1)) for t in ticks]
    spans = [(after - at, n) for (at, n), (after, _) in pairwise(nodes)]
    held_s = sum(span for span, _ in spans)
    starts = [float(line["startup_s"]) for line in fleet if "startup_s" in line]
    return {
        "on_time": round(1 - fmean(late), 4) if late else None,
        "kept": None if outcome.kept_share is None else round(outcome.kept_share, 4),
        "cost": round(sum(span * n for span, n in spans) / (most * held_s), 4) if held_s else None,
        "backlog_most": max((float(t["backlog_rows"] or 0.0) for t in ticks), default=0.0),
        "backlog_mean": round(fmean(float(t["backlog_rows"] or 0.0) for t in ticks), 1) if ticks else None,
        "nodes_most": max((n for _, n in nodes), default=1),
        "moves": moves_in(outcome.decisions),
        "startups_s": starts,
        "exact": None if outcome.answer is None else outcome.answer.exact,
        "rows_in": outcome.rows_in,
        "mean_s": outcome.mean_s,
        "load_average": round(os.getloadavg()[0], 1),
    }


def while_loaded(ticks: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The looks from the first to the last at which rows came: how long the rest takes to drain is not on trial.

    >>> ticks = [{"at_s": at, "arrivals_per_s": rate} for at, rate in enumerate([None, 9.0, 0.0, 7.0, 0.0])]
    >>> [tick["at_s"] for tick in while_loaded(ticks)], while_loaded(ticks[:1])
    ([1, 2, 3], [])
    """
    coming = [at for at, tick in enumerate(ticks) if (tick["arrivals_per_s"] or 0.0) > 0]
    return [t for t in ticks[coming[0] : coming[-1] + 1] if t["arrivals_per_s"] is not None] if coming else []


def moves_in(decisions: Sequence[Mapping[str, Any]]) -> int:
    """How often another number of executors was decided; a change is logged until it was asked for.

    >>> moves_in([{"changes": [{"what": "executors", "want": to}]} for to in ("2", "2", "3", "2")])
    3
    """
    decided = [c["want"] for d in decisions for c in d["changes"] if c["what"] == "executors"]
    return sum(before != now for before, now in pairwise(["", *decided]))


def shown(policy: str, runs: list[dict[str, Any]]) -> str:
    def middle(what: str) -> float:
        return median(float(one[what]) for one in runs if one[what] is not None)

    exact = all(one["exact"] for one in runs)
    return (
        f"{policy:>14}  on time {middle('on_time'):.1%}  kept {middle('kept'):.1%}  cost {middle('cost'):.2f}  backlog "
        f"{middle('backlog_most'):,.0f} at most, {middle('backlog_mean'):,.0f} mean  nodes up to "
        f"{middle('nodes_most'):.0f}, {middle('moves'):.0f} moves, exact {exact}"
    )


if __name__ == "__main__":
    main()
