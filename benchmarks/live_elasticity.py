"""A load that triples and falls back, on real Spark, under sluicegate and under each paper's own policy.

Usage: live_elasticity.py [--apps a,b] [--policies x,y] [--seconds S] [--out FILE.jsonl]

Every application runs under every policy in the same session, one after the other, at the same load; a run that is in
the file already is not run again. The table says for how many rows the promise was kept, what it cost against holding a
plan for the peak all the time (sluicegate's plan by the costs of the first run, the same for all policies of an
application), how often k moved, and the most processors held. What bounds it: applications that compute share two
cores, so their k is worth less than it costs; those that wait show k as a cluster would.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from sluicegate.lab.apps.catalogue import app_named
from sluicegate.lab.running.app import App
from sluicegate.lab.running.load import triples
from sluicegate.lab.running.outcome import Outcome
from sluicegate.lab.running.run_app import run_app
from sluicegate.spark.controller import Control
from sluicegate.spark.session import spark_session

APPS = "chain,linear_waiting,diamond_waiting,star_waiting,wordcount,top_n"
POLICIES = "sluicegate,drs,es-stream,mba,mc-stream,uncertainty-7"
SLOTS = 16


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--apps", default=APPS)
    parser.add_argument("--policies", default=POLICIES)
    parser.add_argument("--seconds", type=float, default=75.0)
    parser.add_argument("--out", type=Path, default=Path("live_elasticity.jsonl"))
    given = parser.parse_args()
    done = [json.loads(line) for line in given.out.read_text().splitlines()] if given.out.exists() else []
    spark = spark_session(f"local[{SLOTS}]", {"spark.driver.memory": "1g"}, "sluicegate live elasticity")
    for name in given.apps.split(","):
        for policy in given.policies.split(","):
            if not any((row["app"], row["policy"]) == (name, policy) for row in done):
                row = one_run(spark, app_named(name), policy, given.seconds)
                done.append(row)
                with given.out.open("a") as file:
                    file.write(json.dumps(row) + "\n")
                print(told(row), flush=True)
    spark.stop()
    print(table(done))


def one_run(spark: SparkSession, app: App, policy: str, seconds: float) -> dict[str, Any]:
    control = Control(policy, (app.slo,), SLOTS)
    with tempfile.TemporaryDirectory() as folder:
        outcome = run_app(app, spark, Path(folder) / "run", triples(app.calm_per_s), seconds, control)
    return row_of(outcome)


def row_of(outcome: Outcome) -> dict[str, Any]:
    held = [sum(tick["running"].values()) for tick in outcome.ticks]
    return {
        "app": outcome.app,
        "policy": outcome.policy,
        "promise": outcome.goal.latency_bounds,
        "kept": outcome.kept_share,
        "mean_s": outcome.mean_s,
        "p95_s": outcome.p95_s,
        "slot_seconds": outcome.slot_seconds,
        "static_peak": outcome.static_peak,
        "seconds": outcome.seconds,
        "rescales": outcome.rescales,
        "most_held": max(held, default=0),
        "exact": outcome.answer.exact if outcome.answer else None,
    }


def told(row: dict[str, Any]) -> str:
    return f"{row['app']} {row['policy']}: kept {row['kept']:.1%}, {row['rescales']} moves, exact {row['exact']}"


def table(rows: list[dict[str, Any]]) -> str:
    """Markdown, one line a run; static peak is that of the application's first run under sluicegate."""
    lines = [
        "| app | policy | promise kept | mean | p95 | slot-seconds / static peak | moves | most held | exact |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        peers = [r["static_peak"] for r in rows if r["app"] == row["app"] and r["static_peak"]]
        share = f"{row['slot_seconds'] / peers[0] / row['seconds']:.2f}" if peers else "-"
        cells = (
            row["app"],
            row["policy"],
            f"{row['kept']:.1%}",
            f"{row['mean_s']:.2f} s",
            f"{row['p95_s']:.2f} s",
            share,
            str(row["rescales"]),
            str(row["most_held"]),
            "yes" if row["exact"] else "NO",
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
