"""What 1, 2 and 4 nodes sustain of the eight applications, and how well twice the largest size is predicted.

Usage: mst_curves.py [--apps a,b] [--nodes 1,2] [--slots 4] [--minutes M] [--delta D] [--batch S] [--out DIR]
                     [--within MINUTES]

The sizes given are trained on, twice the largest is measured too and held against what both models predict from the
others. Some four minutes an application: one for Spark and its first node, one a size. All applications are taken with
a first operator that waits (`eight_waiting`): on a machine of few cores those that only compute would measure these
cores, whatever the number of nodes. The other operators compute as they always do, so the curves bend as soon as they
take up the cores that all nodes share: with two cores at 8 nodes of 2 slots already, so that four nodes are the most
that is asked for. Sizes are kept in DIR, and applications without a curve on the page are measured first: ended, or not
settled, the same command measures what is missing. On the page an application that was measured again takes the place
of what was known of it.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

import results
from sluicegate.config.capacity_file import CapacityFile, read_capacity_file
from sluicegate.errors import SluicegateError
from sluicegate.lab.apps.catalogue import app_named
from sluicegate.lab.profile.mst import MstMeasured, MstSettings, checked_sizes, measure_mst
from sluicegate.model.mst import choose_model, fit_model
from sluicegate.model.mst_samples import samples_of
from turns import Turns, end_as_by_ctrl_c

EIGHT = "grep,rolling_count,unique_visitor,page_view,data_clean,vht,hashtags,flight_distances"
WITHIN = 0.10


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--apps", default=EIGHT)
    parser.add_argument("--nodes", default="1,2")
    parser.add_argument("--slots", type=int, default=4)
    parser.add_argument("--minutes", type=float, default=3.0, help="at most, of one application, once Spark is warm")
    parser.add_argument("--delta", type=float, default=0.1)
    parser.add_argument("--batch", type=float, default=1.0, help="seconds of a batch flat out, without its overhead")
    parser.add_argument("--out", type=Path, default=Path("mst-curves"))
    parser.add_argument("--within", type=float, default=float("inf"), help="minutes, for all of it")
    given = parser.parse_args()
    end_as_by_ctrl_c()
    sizes = checked_sizes([int(size) for size in given.nodes.split(",")])
    settings = MstSettings(given.slots, given.batch, given.delta, validate=False)
    known = Counter(line["app"] for line in results.read("mst") if "problem" not in line)
    apps = [f"{name}_waiting" for name in given.apps.split(",")]
    turns = Turns(apps, known, minutes=given.within, each_s=60 * (given.minutes + 1))
    for name in turns:
        with turns.playing(name):
            found = of_one(name, sizes, settings, given.minutes, given.out)
            print(json.dumps(found), flush=True)
            recorded(found)
    turns.end()


def recorded(found: dict[str, Any]) -> None:
    """Record one application; what did not settle takes the place of earlier attempts only."""
    app = found["app"]
    if "problem" not in found:
        results.forget("mst", app=app)
    for problem in {line["problem"] for line in results.read("mst") if line["app"] == app and "problem" in line}:
        results.forget("mst", app=app, problem=problem)
    results.record("mst", **found)


def of_one(name: str, sizes: tuple[int, ...], settings: MstSettings, minutes: float, out: Path) -> dict[str, Any]:
    """The curve of one application, and the prediction of twice its largest size; or why there is none."""
    began_s = time.time()
    app, twice = app_named(name), 2 * sizes[-1]
    told: dict[str, Any] = {
        "app": name,
        "slots_per_node": settings.slots_per_node,
        "delta": settings.delta,
        "batch_s": settings.batch_s,
    }
    out.mkdir(parents=True, exist_ok=True)
    try:
        measured = measure_mst(
            app, (*sizes, twice), minutes, out, lambda text: print(f"  {text}", flush=True), settings
        )
        told |= points(measured.file) | predicted(measured, sizes, twice)
    except SluicegateError as problem:
        so_far = out / f"{name}.mst.toml"
        told |= (points(read_capacity_file(so_far)) if so_far.exists() else {}) | {"problem": str(problem)}
    return told | {"took_s": round(time.time() - began_s), "load_average": round(os.getloadavg()[0], 1)}


def points(file: CapacityFile) -> dict[str, Any]:
    return {
        "measured": file.measured,
        "points": [[p.machines, p.rate_per_s, p.sd_per_s] for p in file.points],
        "startup_s": file.startup_s,
    }


def predicted(measured: MstMeasured, sizes: tuple[int, ...], twice: int) -> dict[str, Any]:
    """Twice the largest size, by what was measured up to it."""
    training = [(m, rate) for m, rate in measured.file.samples("training") if m in sizes]
    truth = next(point.rate_per_s for point in measured.file.points if point.machines == twice)
    chosen = choose_model(training, largest=twice)
    forms = {form: fit_model(samples_of(training), form, twice).mean_per_s(twice) for form in (1, 2)}
    off = chosen.mean_per_s(twice) / truth - 1
    return {
        "twice": twice,
        "measured_per_s": truth,
        "model": chosen.form,
        "predicted_per_s": round(chosen.mean_per_s(twice), 1),
        "by_form": {form: round(rate, 1) for form, rate in forms.items()},
        "off": round(off, 4),
        "within_10_percent": abs(off) <= WITHIN,
    }


if __name__ == "__main__":
    main()
