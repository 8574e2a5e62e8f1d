"""How well the models predict the papers' applications: `headgate fidelity` for several of them in one session.

Usage: fidelity_of_apps.py [--apps a,b] [--seconds S] [--rounds N] [--html FILE] [--out FILE.jsonl]

What bounds it: applications that compute share the machine's cores, and more tasks than cores gain nothing. The three
dataflows are taken with tasks that wait instead, top_n with a look-up that waits (shop), fpd with transactions that are
fetched first; operators that compute have at most as many processors as there are cores. For vld, which only
computes, and for fpd, where one operator of three waits, that leaves few allocations: each may come at several rates.
So for diamond, whose allocations at one rate lie 4% apart, less than runs of 25 s scatter.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from headgate.apps.catalogue import app_named
from headgate.cli.fidelity import as_document, show
from headgate.cli.out import console, write_page
from headgate.config.machine import usable_cores
from headgate.report.fidelity_page import fidelity_page
from headgate.running.fidelity import measure_fidelity
from headgate.spark.session import spark_session

APPS = "linear_waiting,diamond_waiting,star_waiting,shop,vld,fpd_waiting"
SETTINGS: dict[str, dict[str, Any]] = {
    "diamond_waiting": {"shares": (0.4, 0.7, 1.0), "pace_s": 4.0},
    "vld": {"rate_per_s": 70.0, "shares": (0.2, 0.35, 0.55, 0.8, 1.0), "pace_s": 3.5, "most": usable_cores()},
    "fpd_waiting": {
        "rate_per_s": 80.0,
        "shares": (0.4, 0.7, 1.0),
        "pace_s": 3.0,
        "most": {"detect": usable_cores(), "report": usable_cores()},
    },
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--apps", default=APPS)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--html", type=Path)
    parser.add_argument("--out", type=Path, default=Path("fidelity_of_apps.jsonl"))
    given = parser.parse_args()
    spark = spark_session("local[32]", {"spark.driver.memory": "1g"}, "headgate fidelity of applications")
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
        with given.out.open("a") as file:
            file.write(json.dumps(as_document(one)) + "\n")
        show(one, console())
        if given.html is not None:
            write_page(given.html, fidelity_page(found))
    spark.stop()


if __name__ == "__main__":
    main()
