"""Mc-Stream's levels, one alone against all four, live on a cluster of three local nodes.

Usage: mc_levels.py [--rounds 1] [--seconds 20] [--levels none,instance,...] [--within MINUTES]

Two operators: ``work`` waits for every row, ``count`` has state by key and waits for every row of a key. Rows come at
the usual rate all the time; each arm is played three hardships of ``--seconds``, one after the other, the next once the
rows of the one before are out and some calm seconds are over:

    slow node     rows take three times as long on the node that runs most instances of ``work``
    skewed keys   half of all rows have one of two keys
    load x3       three times the usual load

The arms begin alike, with the same instances: ``none`` keeps them where Spark puts them (the loop only looks),
``instance`` has algorithms 1 and 2, ``scheduling`` algorithm 3, ``resource`` algorithm 4, ``all`` every one of them;
the fourth level, the user's, is the topology itself. Recorded of each hardship: mean latency of the rows that came
during it, rows a second until the last of them is out, and how unevenly nodes are used: the standard deviation over
nodes of the share of their slots that tasks keep occupied, and of their processor time. Sinks are compared with what
was fed, key by key.

An arm takes some three minutes. The one that was measured fewest times is the next, so that calls add up.

What bounds it: three nodes share two cores and have no network between them, so what algorithm 3 saves by bringing
operators together does not show; hardships of some seconds leave algorithm 4 time for one or two moves.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

import results
from sluicegate.domain import Shape
from sluicegate.errors import StillWaiting
from sluicegate.runlog.batch_log import BatchRecord, Tail
from sluicegate.spark.act.executors import Executors
from sluicegate.spark.cluster.java import QUICK_JAVA
from sluicegate.spark.cluster.standalone import Cluster
from sluicegate.spark.cluster.waiting import wait_until
from sluicegate.spark.controller import Control
from sluicegate.spark.ground import Ground
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.runtime import Running, start
from sluicegate.spark.session import spark_session, stop_spark
from sluicegate.spark.supervisor import Supervisor
from turns import Turns, end_as_by_ctrl_c

NODES, SLOTS, PATIENCE_S = 3, 6, 300.0
RATE_PER_S, WORK_S, COUNT_S, SLOWER, KEYS = 240.0, 0.008, 0.003, 3.0, 60
USERS = {"work": 3, "count": 2}
"""What the user set: enough for the usual load."""
LEVELS = ("instance", "scheduling", "resource")
ARMS: dict[str, tuple[str, ...]] = {"none": (), **{name: (name,) for name in LEVELS}, "all": LEVELS}
SKEWED = "skewed keys"
HARDSHIPS = ("slow node", SKEWED, "load x3")
CALM_S, _FEED_S = 6.0, 0.2


def pipeline(slow: Path) -> Pipeline:
    """The file ``slow`` holds the address of the node that is slow now."""

    def work(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        here = os.environ.get("SPARK_LOCAL_IP", "")
        times = SLOWER if slow.exists() and slow.read_text() == here else 1.0
        for part in parts:
            time.sleep(part.num_rows * WORK_S * times)
            yield part

    def count(rows: DataFrame) -> DataFrame:
        return rows.groupBy("key").applyInPandasWithState(
            counted, "key long, n long", "n long", "update", GroupStateTimeout.NoTimeout
        )

    made = Pipeline("levels")
    done = made.operator(
        "work", lambda rows: rows.mapInArrow(work, "key long"), made.source("rows", "key long"), fuse=False
    )
    made.sink("counts", made.operator("count", count, done, stateful=True, key_groups=8, fuse=False))
    return made


def counted(key: tuple[int], parts: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    """How often a key was seen so far; every row is waited for."""
    fresh = sum(len(part) for part in parts)
    time.sleep(fresh * COUNT_S)
    n = (state.get[0] if state.exists else 0) + fresh
    state.update((n,))
    yield pd.DataFrame({"key": [key[0]], "n": [n]})


class Load:
    """The stream of rows, from a thread: ``rate_per_s`` and ``skewed`` may be set at any time."""

    def __init__(self, running: Running) -> None:
        self.feed, self.fed, self._dice = running.feed("rows"), Counter[int](), np.random.default_rng(5)
        self.rate_per_s, self.skewed = RATE_PER_S, False
        self._ended, self._thread = threading.Event(), threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *problem: object) -> None:
        self._ended.set()
        self._thread.join()

    def some(self, rows: int) -> None:
        keys = self._dice.integers(0, KEYS, rows)
        if self.skewed:
            keys = np.where(self._dice.random(rows) < 0.5, keys % 2, keys)
        self.fed.update(keys.tolist())
        self.feed.append(pa.table({"key": pa.array(keys, pa.int64())}))

    def _run(self) -> None:
        at_s, due = time.monotonic(), 0.0
        while not self._ended.wait(_FEED_S):
            now_s = time.monotonic()
            due, at_s = due + (now_s - at_s) * self.rate_per_s, now_s
            if due >= 1:
                self.some(int(due))
                due -= int(due)


def control_of(arm: str) -> Control:
    off = [f"{name}_level=false" for name in LEVELS if name not in ARMS[arm]]
    options = (*off, "redeploy_s=3")
    return Control("mc-stream", ("mean=2s",), NODES * SLOTS, 1.0, dry_run=arm == "none", options=options)


def played(spark: SparkSession, ground: Ground, folder: Path, arm: str, seconds: float) -> list[dict[str, Any]]:
    """One arm through all hardships."""
    slow, follow = folder.parent / "slow", ground.fleet(spark)
    assert follow is not None
    executors = {one.id: one.host for one in Executors(spark).all()}
    found: list[dict[str, Any]] = []
    with start(pipeline(slow), spark, folder, USERS) as running, follow(running) as fleet:
        load = Load(running)
        for rows in (30, 60, 120, 240, 240):  # the first batches compile
            load.some(rows)
            running.drain(PATIENCE_S)
        fleet.wait_until_complete(PATIENCE_S)
        with Supervisor(running.layout, control_of(arm)) as supervisor:
            supervisor.wait_for_a_look(PATIENCE_S, threading.Event())
            with load:
                for hardship in HARDSHIPS:
                    time.sleep(CALM_S)
                    moves, since_s, before = len(decided(running)), time.time(), load.feed.rows
                    load.rate_per_s, load.skewed = RATE_PER_S * (3 if hardship == "load x3" else 1), hardship == SKEWED
                    if hardship == "slow node":
                        slow.write_text(busiest(running, executors))
                    time.sleep(seconds)
                    until_s, fed = time.time(), load.feed.rows
                    load.rate_per_s, load.skewed = RATE_PER_S, False
                    slow.unlink(missing_ok=True)
                    if not wait_until(partial(are_out, running, fed), PATIENCE_S, 0.5):
                        raise StillWaiting(f"{arm}: rows of {hardship!r} are not out after {PATIENCE_S:g} s")
                    out_s = time.time()
                    told = {"arm": arm, "hardship": hardship, "rows_per_s": (fed - before) / (out_s - since_s)}
                    told |= {"moves": len(decided(running)) - moves, "instances": dict(instances(running))}
                    found.append(told | figures(running, executors, since_s, until_s, out_s))
            running.drain(PATIENCE_S)
        exact = last_counts(running) == dict(load.fed)
    return [one | {"exact": exact} for one in found]


def busiest(running: Running, executors: Mapping[str, str]) -> str:
    """The node where most instances of ``work`` run: a slow node without any would be none.

    By the plan, which an arm may have changed since the last batch, else by that batch.
    """
    last = [one for one in running.records("work") if one.task_on][-1]
    hosts = running.plan().of("work").hosts or [executors[on] for on in last.task_on if on in executors]
    return Counter(hosts).most_common(1)[0][0]


def are_out(running: Running, rows: int) -> bool:
    """Whether the last operator has published what the first ``rows`` rows gave."""
    running.check()
    return sum(record.rows for record in running.records("count")) >= rows


def decided(running: Running) -> list[str]:
    return list(Tail(running.layout.decisions).lines())


def instances(running: Running) -> Mapping[str, int]:
    return {name: running.plan().of(name).processors for name in USERS}


def last_counts(running: Running) -> dict[int, int]:
    """The last count of every key; none where a count is in the sink twice."""
    of_a_key = (F.max("n").alias("n"), F.count("n").alias("rows"), F.countDistinct("n").alias("different"))
    rows = running.read("count").groupBy("key").agg(*of_a_key).collect()
    if any(row["rows"] != row["different"] for row in rows):
        return {}
    return {int(row["key"]): int(row["n"]) for row in rows}


def figures(
    running: Running, executors: Mapping[str, str], since_s: float, until_s: float, out_s: float
) -> dict[str, Any]:
    """Latency of the rows that came from ``since_s`` to ``until_s``; how evenly nodes were used until ``out_s``."""

    def within(name: str) -> list[BatchRecord]:
        return [one for one in running.records(name) if since_s <= one.started_s <= out_s]

    ages = [(age, w, one.published_s) for one in within("count") for age, w in one.born.ages_s(one.published_s)]
    ages = [(age, w, at_s) for age, w, at_s in ages if since_s <= at_s - age <= until_s]
    busy_s = dict.fromkeys(executors.values(), 0.0)
    for one in (record for name in USERS for record in within(name)):
        for on, took_s in zip(one.task_on, one.task_s, strict=False):
            if on in executors:
                busy_s[executors[on]] += took_s
    ticks = [json.loads(line) for line in Tail(running.layout.ticks).lines()]
    looks = [[node["cpu"] for node in tick["nodes"]] for tick in ticks if since_s <= tick["at_s"] <= out_s]
    cpu = [statistics.pstdev(nodes) for nodes in looks if len(nodes) == NODES]
    return {
        "mean_s": sum(age * w for age, w, _ in ages) / sum(w for _, w, _ in ages) if ages else None,
        "busy_sd": statistics.pstdev([busy / (out_s - since_s) / SLOTS for busy in busy_s.values()]),
        "cpu_sd": statistics.fmean(cpu) if cpu else None,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--levels", default=",".join(ARMS))
    parser.add_argument("--within", type=float, default=float("inf"), help="minutes, for all of it")
    given = parser.parse_args()
    end_as_by_ctrl_c()
    alike = (one for one in results.read("mc_levels") if (one["hardship"], one["seconds"]) == (SKEWED, given.seconds))
    before = Counter(one["arm"] for one in alike)
    each_s = len(HARDSHIPS) * (CALM_S + 2 * given.seconds) + 40.0
    turns = Turns(given.levels.split(","), before, given.rounds, given.within, each_s)
    with tempfile.TemporaryDirectory() as place:
        cluster = Cluster(Path(place) / "cluster", patience_s=PATIENCE_S)
        try:
            in_turn(turns, cluster, Path(place), given.seconds)
        finally:
            cluster.down()
    turns.end()


def in_turn(turns: Turns, cluster: Cluster, place: Path, seconds: float) -> None:
    """All arms on one cluster, in one session."""
    status = cluster.up(NODES, SLOTS, "1g")
    shape = Shape(SLOTS, NODES, NODES)
    settings = {
        "spark.driver.memory": "1g",
        "spark.executor.memory": "640m",
        "spark.executor.cores": str(SLOTS),
        "spark.executor.instances": str(NODES),
        "spark.cores.max": str(shape.slots),
        "spark.driver.extraJavaOptions": QUICK_JAVA,
        "spark.executor.extraJavaOptions": QUICK_JAVA,
        "spark.locality.wait": "3s",
        **cluster.settings(),
    }
    ground = Ground(status.url, settings, shape)
    spark = spark_session(ground.master, ground.settings, "sluicegate levels of Mc-Stream")
    try:
        Executors(spark).wait_for(NODES, PATIENCE_S)
        for number, arm in enumerate(turns):
            with turns.playing(arm):
                for one in played(spark, ground, place / f"{arm}-{number}", arm, seconds):
                    results.record("mc_levels", seconds=seconds, **one)
                    print(told(one), flush=True)
    finally:
        stop_spark(spark)


def told(one: Mapping[str, Any]) -> str:
    mean = "no rows" if one["mean_s"] is None else f"mean {one['mean_s']:.2f} s"
    return (
        f"{one['hardship']:>11}, {one['arm']:>10}: {mean}, {one['rows_per_s']:.0f} rows/s, slots busy sd "
        f"{one['busy_sd']:.3f}, {one['moves']} decisions, {one['instances']}, exact {one['exact']}"
    )


if __name__ == "__main__":
    main()
