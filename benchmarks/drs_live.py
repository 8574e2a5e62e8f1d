"""DRS's figures 6 to 9 on real Spark, with operators that wait, so that k is worth what it would be on a cluster.

Usage: drs_live.py [--only 7,8,9] [--seconds 80]

    7   six allocations of nine processors over three operators: E[T] by M/M/k and as measured (figures 6 and 7); all
        six forwards and backwards, the first two fifths of each time not counted
    8   from two bad allocations, and from the best, under `drs` with K_max: the re-allocations once T_ra is over
    9   the load in three steps under T_max and T_min, with a window of w = 3 and of 6 looks; and a burst of three looks

A minute of the paper is a look of 2 s here: figure 9 has its 40 and 25 minutes, its changes at minutes 6, 21 and 34,
and T_ra is w looks, or the window would still hold the allocation before. T_max is ten times what a nearly empty batch
takes on this machine, T_min 0.45 of it, as in the paper (1,000 and 450 ms). Every sink is compared with what was fed.

What bounds it: rows are served in batches, whose own time is most of E[T]; M/M/k knows nothing of it, so its times are
too short and only their order is compared. The six allocations, and what the operators wait, are chosen so that the
order can be measured: M/M/k and the law of batches agree on it, and by that law two neighbours are an eighth apart.
Whether the running pipeline has that order is what is measured.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import SparkSession

import results
from sluicegate.domain import Edge, Operator, Topology
from sluicegate.lab.agreement import pairs_in_order
from sluicegate.lab.apps import chain
from sluicegate.lab.running.feeding import Feeder
from sluicegate.lab.running.load import constant
from sluicegate.lab.running.outcome import Outcome
from sluicegate.lab.running.run_app import Surroundings, run_app, warm_up
from sluicegate.model.stations import Stations
from sluicegate.policy.papers.drs import assign_processors
from sluicegate.spark.controller import Control
from sluicegate.spark.pipeline.observing import sojourn_of
from sluicegate.spark.pipeline.runtime import start
from sluicegate.spark.session import spark_session

WAITS_MS = {"parse": 2.0, "enrich": 9.0, "store": 1.0}
NAMES = tuple(WAITS_MS)
APP = replace(chain.APP, build=partial(chain.build, waits_ms=WAITS_MS))
RATE_PER_S, K_MAX, T_RA_S = 250.0, 5, 10.0
"""With five processors one allocation alone keeps up: who gets a sixth would be decided by a few percent of noise."""
BAD = ((2, 2, 1), (1, 2, 2))
SIX, SIX_PER_S = ((3, 4, 2), (4, 4, 1), (4, 3, 2), (5, 3, 1), (2, 6, 1), (2, 3, 4)), 50.0
SIX_WAITS_MS = {"parse": 34.0, "enrich": 48.0, "store": 14.0}
"""50 rows/s keep 1.7, 2.4 and 0.7 tasks busy; waits are long, so that a row's processor time beside them is small."""
NOT_COUNTED = 0.4
"""Of each allocation's time: batches need some to reach their steady length where an operator is 85% busy."""
CALM_PER_S, MINUTES, BURST_MINUTES = 60.0, 40, 25
STEPS = ((0, 1.0), (6, 2.0), (21, 1.0), (34, 3.0))
"""From that minute on, so many times the calm load: 6, 12, 6 and 18 frames a second in the paper."""
BURST = (6, 9)
"""Between these minutes twice as much: a little more than one task each can do, so it is over soon."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="7,8,9")
    parser.add_argument("--seconds", type=float, default=80.0)
    given = parser.parse_args()
    spark = spark_session("local[16]", {"spark.driver.memory": "1g"}, "sluicegate DRS live")
    with tempfile.TemporaryDirectory() as folder:
        figures = {"7": figure_7, "8": figure_8, "9": figure_9}
        for name in given.only.split(","):
            for one in figures[name](spark, Path(folder), given.seconds):
                results.record("drs_live", **one)
                print(one, flush=True)
    spark.stop()


def stations(rate_per_s: float, waits_ms: Mapping[str, float] = WAITS_MS) -> Stations:
    """The queues as they truly are."""
    operators = tuple(Operator(name, 1e3 / ms) for name, ms in waits_ms.items())
    edges = tuple(Edge(a, b) for a, b in zip(("source", *NAMES), NAMES, strict=False))
    return Stations.of(Topology("chain", operators, edges), np.full(len(NAMES), rate_per_s), rate_per_s)


def shown(k: Sequence[int]) -> str:
    return ":".join(map(str, k))


def best() -> tuple[int, ...]:
    return tuple(assign_processors(stations(RATE_PER_S), K_MAX).tolist())


def figure_7(spark: SparkSession, folder: Path, seconds: float) -> list[dict[str, Any]]:
    """One pipeline, six allocations, twice."""
    found: list[dict[str, Any]] = []
    app, each_s = replace(chain.APP, build=partial(chain.build, waits_ms=SIX_WAITS_MS)), 0.3 * seconds
    with start(app.build(), spark, folder / "seven") as running:
        warm_up(app, running)
        for k in (*SIX, *reversed(SIX)):
            running.set_processors(dict(zip(NAMES, k, strict=True)))
            feeder = Feeder(app, {"calls": running.feed("calls")}, constant(SIX_PER_S), each_s)
            since_s = time.time() + NOT_COUNTED * each_s
            feeder.start()
            feeder.join(each_s + 60)
            feeder.stop()
            running.drain()
            time.sleep(1.0)
            seen = sojourn_of(one for one in running.records(NAMES[-1]) if one.published_s > since_s)
            if seen is None:
                raise SystemExit(f"nothing came out at {shown(k)}: give more --seconds")
            found.append({"allocation": shown(k), "model_s": model_s(k), "mean_s": seen.mean_s})
        exact = chain.check({"calls": running.feed("calls").rows}, {"done": running.read(NAMES[-1])}).exact
    means = {k: statistics.fmean(one["mean_s"] for one in found if one["allocation"] == shown(k)) for k in SIX}
    right, pairs = pairs_in_order([(model_s(k), means[k]) for k in SIX])
    same = {"figure": "6, 7", "exact": exact, "in_order": right, "pairs": pairs}
    return [{**same, "what": f"six allocations, {SIX_PER_S:g} rows/s", **one} for one in found]


def model_s(k: Sequence[int]) -> float:
    """E[T] by M/M/k of one of the six."""
    return float(stations(SIX_PER_S, SIX_WAITS_MS).total_mean_s(np.array(k, dtype=np.int64)))


def figure_8(spark: SparkSession, folder: Path, seconds: float) -> list[dict[str, Any]]:
    """Two bad allocations, and the best, which has to stay."""
    found = []
    options = (f"t_ra_s={T_RA_S}", f"k_max={K_MAX}", "t_m_s=1", "alpha=0.5")
    control = Control("drs", budget=K_MAX, options=options)
    for k in (*BAD, best()):
        begins = dict(zip(NAMES, k, strict=True))
        place = folder / f"eight-{shown(k).replace(':', '-')}"
        outcome = run_app(APP, spark, place, constant(RATE_PER_S), 0.4 * seconds, control, processors=begins)
        found.append(
            {
                "figure": "8",
                "what": f"K_max {K_MAX}, T_ra {T_RA_S:g} s, {RATE_PER_S:g} rows/s",
                "allocation": shown(k),
                **moved(outcome, 0.4 * seconds),
                "optimum": shown(best()),
            }
        )
    return found


def figure_9(spark: SparkSession, folder: Path, seconds: float) -> list[dict[str, Any]]:
    """The load in steps, and a burst, each with both windows; ``seconds`` are those of the steps."""
    found, look_s = [], seconds / MINUTES
    for what, load, minutes in (("three steps", in_steps, MINUTES), ("a burst", burst, BURST_MINUTES)):
        for w in (3, 6):
            control = Control("drs", budget=14, options=(f"t_ra_s={w * look_s:g}", f"w={w}", f"t_m_s={look_s:g}"))
            around = Surroundings(promised=lambda batch_s: (f"mean={max(10 * batch_s, 1.0):.2f}s",))
            place = folder / f"nine-{what.replace(' ', '-')}-{w}"
            outcome = run_app(APP, spark, place, load, minutes * look_s, control, around=around)
            moves = moved(outcome, minutes * look_s)
            found.append({"figure": "9", "what": f"{what}, w = {w}", "allocation": "1:1:1", **moves})
    return found


def in_steps(share: float) -> float:
    """
    >>> [in_steps(minute / 40) for minute in (0, 5, 6, 20, 21, 33, 34, 39)]
    [60.0, 60.0, 120.0, 120.0, 60.0, 60.0, 180.0, 180.0]
    """
    return CALM_PER_S * next(times for since, times in reversed(STEPS) if share * MINUTES >= since - 1e-9)


def burst(share: float) -> float:
    """
    >>> [burst(minute / 25) for minute in (0, 5.9, 6.1, 8.9, 9.1, 24)]
    [60.0, 60.0, 120.0, 120.0, 60.0, 60.0]
    """
    return CALM_PER_S * (2.0 if BURST[0] <= share * BURST_MINUTES < BURST[1] else 1.0)


def moved(outcome: Outcome, lasts_s: float) -> dict[str, Any]:
    """The moves while the load lasted; what is decided once it has ended says nothing of the figure."""
    until_s = outcome.began_s + lasts_s
    moves = [one for one in outcome.decisions if one["rescales"] and one["at_s"] <= until_s]
    return {
        "moves": len(moves),
        "moved_at_s": ", ".join(f"{one['at_s'] - outcome.began_s:.0f}" for one in moves),
        "to": ", ".join(shown([one["running"][name] for name in NAMES]) for one in moves) or "stays",
        "mean_s": outcome.mean_s,
        "promise": dict(outcome.goal.latency_bounds),
        "exact": bool(outcome.answer and outcome.answer.exact),
    }


if __name__ == "__main__":
    main()
