"""How well the models predict the papers' applications: `sluicegate fidelity` for several of them in one session.

Usage: fidelity_of_apps.py [--apps a,b] [--seconds S] [--rounds N] [--html FILE]

What bounds it: applications that compute share the machine's cores, and more tasks than cores gain nothing. So all six
are taken with work that waits: top_n with a look-up (shop), vld and fpd with rows that are fetched and looked up. Six
allocations of vld and fpd lie 9% apart or more, by prediction, which is more than runs of 25 s scatter; those of
diamond, whose four branches count a quarter each, 5%. The longer the pace, the more of a row's time is work that k
shortens: a shop with a batch every 1.5 s has settings 3.5% apart.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path
from typing import Any

import results
from sluicegate.cli.fidelity import show
from sluicegate.cli.out import console, write_page
from sluicegate.lab.apps.catalogue import app_named
from sluicegate.lab.fidelity.fidelity import Fidelity, measure_fidelity
from sluicegate.lab.fidelity.page import fidelity_page
from sluicegate.lab.fidelity.settings import median_error, pairs_in_order
from sluicegate.spark.session import spark_session

APPS = "linear_waiting,diamond_waiting,star_waiting,shop,vld_waiting,fpd_waiting"
SETTINGS: dict[str, dict[str, Any]] = {
    "diamond_waiting": {"pace_s": 4.0},
    "shop": {"pace_s": 3.0},
    "vld_waiting": {"rate_per_s": 13.0, "pace_s": 4.0},
    "fpd_waiting": {"rate_per_s": 80.0, "pace_s": 3.5},
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--apps", default=APPS)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--html", type=Path)
    given = parser.parse_args()
    spark = spark_session("local[32]", {"spark.driver.memory": "1g"}, "sluicegate fidelity of applications")
    found = []
    for name in given.apps.split(","):
        with tempfile.TemporaryDirectory() as folder:
            one = measure_fidelity(
                app_named(name),
                spark,
                Path(folder) / "run",
                seconds=given.seconds,
                rounds=given.rounds,
                say=print,
                **SETTINGS.get(name, {}),
            )
        found.append(one)
        results.record("fidelity", **row_of(one))
        show(one, console())
        if given.html is not None:
            write_page(given.html, fidelity_page(found))
    spark.stop()


def row_of(found: Fidelity) -> dict[str, Any]:
    right, pairs = pairs_in_order(found.settings, lambda one: one.predicted.mean_s)
    p95 = [abs(one.predicted.p95_s / one.measured.p95_s - 1) for one in found.settings]
    burst = [abs(one.predicted.rate_per_s / one.measured.rate_per_s - 1) for one in found.settings]
    return {
        "app": found.app,
        "settings": len(found.settings),
        "error_mean": median_error(found.settings),
        "error_p95": statistics.median(p95),
        "error_burst": statistics.median(burst),
        "in_order": right / pairs if pairs else None,
    }


if __name__ == "__main__":
    main()
