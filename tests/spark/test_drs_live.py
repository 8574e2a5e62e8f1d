"""DRS's Fig 8 on real Spark: from a bad allocation to the optimum, in one re-allocation, once T_ra is over."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession
from tests.spark.small_pipelines import feed_steadily, ids_of, waiting, warm_up

from sluicegate.domain import Edge, Operator, Topology
from sluicegate.model.stations import Stations
from sluicegate.policy.papers.drs import assign_processors
from sluicegate.runlog.batch_log import Tail
from sluicegate.spark.controller import Control
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.runtime import start
from sluicegate.spark.supervisor import Supervisor

pytestmark = [pytest.mark.slow, pytest.mark.long]

RATE_PER_S, K_MAX, T_RA_S, PATIENCE_S = 250.0, 5, 10.0, 120.0
"""With 5 processors one allocation alone keeps up; who gets a sixth would be decided by a few percent of noise."""
WAITS_S = {"extract": 0.002, "match": 0.009, "sum": 0.001}
"""Seconds that one row waits in each operator."""
BAD = {"extract": 2, "match": 2, "sum": 1}


def in_a_row() -> Pipeline:
    pipeline = Pipeline("fig_8")
    stream = pipeline.source("frames", "id long")
    for name, seconds in WAITS_S.items():
        stream = pipeline.operator(name, waiting(seconds), stream, fuse=False)
    pipeline.sink("out", stream)
    return pipeline


def optimum() -> dict[str, int]:
    """Algorithm 1 with the true service times, which the run has to find out."""
    names = tuple(WAITS_S)
    operators = tuple(Operator(name, 1 / seconds) for name, seconds in WAITS_S.items())
    edges = tuple(Edge(a, b) for a, b in zip(("source", *names), names, strict=False))
    stations = Stations.of(Topology("t", operators, edges), np.full(len(names), RATE_PER_S), RATE_PER_S)
    return dict(zip(names, assign_processors(stations, K_MAX).tolist(), strict=True))


def test_a_bad_allocation_becomes_the_optimum_in_one_re_allocation_after_t_ra(
    spark: SparkSession, tmp_path: Path
) -> None:
    control = Control("drs", budget=K_MAX, options=(f"t_ra_s={T_RA_S}", f"k_max={K_MAX}", "t_m_s=1", "alpha=0.5"))
    with start(in_a_row(), spark, tmp_path / "run", BAD) as running:
        feed = running.feed("frames")
        warm_up(running, feed, 8)

        def moved_for_a_while() -> bool:
            found = moves(running.layout.decisions)
            return bool(found) and time.time() >= found[0]["at_s"] + 0.8 * T_RA_S

        with Supervisor(running.layout, control):
            feed_steadily(feed, RATE_PER_S, moved_for_a_while, PATIENCE_S)
            found, ticks = moves(running.layout.decisions), list(Tail(running.layout.ticks).lines())
        running.drain(PATIENCE_S)
        assert ids_of(running.read("sum")) == list(range(feed.rows))
    assert [move["running"] for move in found] == [optimum()]
    assert found[0]["at_s"] - json.loads(ticks[0])["at_s"] >= T_RA_S - 1.0
    assert any(refusal["rule"] == "cool-down" for tick in ticks for refusal in json.loads(tick)["refusals"])


def moves(decisions: Path) -> list[dict[str, Any]]:
    told = [json.loads(line) for line in Tail(decisions).lines()]
    return [one for one in told if one["rescales"]]
