"""Real-time mode: latency of two stages at 1,000 rows/s, and six allocations in the order that GI/G/k predicts.

    python benchmarks/realtime.py [--seconds 25]

Starts a Kafka broker of its own. The two stages of the first part are payments' own, one task each, on local[2]. The
three of the second wait for every row (a service time drawn by the row's number, exponential), so that k matters on few
cores; rows come as a Poisson stream. Predictions are made from what the first allocation measured, as DRS does.

What GI/G/k knows nothing of: between two batches of 5 s the source is not read for a moment. What comes meanwhile is
worked off by what the busiest stage has to spare, so it costs the mean latency a time that grows as 1/(1 - busy). How
long the stalls are is read from when the first stage took its rows.
"""

from __future__ import annotations

import argparse
import json
import runpy
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import results
from sluicegate.domain.births import quantile_s
from sluicegate.lab.agreement import pairs_in_order
from sluicegate.lab.apps.payments import app_of
from sluicegate.lab.running.load import constant
from sluicegate.lab.running.run_realtime import Kafka, run_realtime
from sluicegate.model.stations import Stations
from sluicegate.spark.controller import Control
from sluicegate.spark.edges.topic import KafkaTopic
from sluicegate.spark.kafka.connector import add_connector
from sluicegate.spark.kafka.edge import make_topic
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.realtime.marks import StageFigures, from_document
from sluicegate.spark.realtime.program import Program, declared
from sluicegate.spark.realtime.running import RealTimeRunning
from sluicegate.spark.realtime.stages import graph_of, stages_of
from sluicegate.spark.realtime.topics import TopicFeed
from sluicegate.spark.session import spark_session, stop_spark

_TESTS = Path(__file__).resolve().parents[1] / "tests"
PER_S, AIM_MS = 1000.0, 60.0
WAITS_MS = {"check": 20.0, "score": 10.0}
POISSON_PER_S = 130.0
ALLOCATIONS = ((3, 2), (6, 4), (4, 2), (3, 4), (4, 3), (6, 2))
"""Tasks of check and score, in no order that anything drifts with. 130 rows/s need 2.6 and 1.3 tasks."""
_SETTLE_S = 6.0
_STALL_S = 0.15
"""Twenty times the mean time between two rows of the second part."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Rows that came out in a stretch of time: their ages and what every stage took."""

    ages: tuple[tuple[float, float], ...]
    stages: dict[str, StageFigures]
    intake: tuple[tuple[float, float, float], ...] = ()
    """Of each second: when the first stage took its first and last row, and the longest time between two."""

    @property
    def stalls_s(self) -> list[float]:
        """How long the first stage took no row, each time that this was far longer than between two rows.

        >>> Measured((), {}, ((0.0, 1.0, 0.1), (1.6, 4.0, 0.5), (4.1, 5.0, 0.1))).stalls_s
        [0.6, 0.5]
        """
        between = [after[0] - before[1] for before, after in pairwise(self.intake)]
        longest = [*(line[2] for line in self.intake), *between]
        return sorted((round(gap_s, 3) for gap_s in longest if gap_s > _STALL_S), reverse=True)

    def after_stalls_s(self, busiest: float) -> float:
        """What the stalls add to the mean latency: rows of a stall wait for its end, then for those before them.

        >>> round(Measured((), {}, ((0.0, 4.0, 0.1), (5.0, 10.0, 0.1))).after_stalls_s(0.5), 3)
        0.1
        """
        span_s = self.intake[-1][1] - self.intake[0][0] if self.intake else 0.0
        return sum(one * one for one in self.stalls_s) / 2 / span_s / (1 - busiest) if span_s > 0 else 0.0

    @property
    def mean_s(self) -> float:
        return sum(age * w for age, w in self.ages) / sum(w for _, w in self.ages)


def measured(log: Path, since_s: float, until_s: float) -> Measured:
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    kept = [line for line in lines if since_s <= line["at_s"] - line["span_s"] and line["at_s"] <= until_s]
    stages: dict[str, StageFigures] = {}
    for line in kept:
        for name, told in from_document(line["stages"]).items():
            stages[name] = stages.get(name, StageFigures()) + told
    ages = tuple((float(a), float(w)) for line in kept for a, w in line["ages"])
    return Measured(
        ages,
        stages,
        tuple((line["intake"][0], line["intake"][1], line["intake"][2]) for line in kept if line["intake"]),
    )


def latency(kafka: str, folder: Path, seconds: float) -> None:
    """Part one."""
    spark = spark_session("local[2]", {"spark.driver.memory": "1g"})
    try:
        control = Control("drs-gigk", ("mean=1s",), budget=2, dry_run=True)
        told = run_realtime(app_of(), spark, folder, constant(PER_S), seconds, control, kafka=Kafka(kafka))
    finally:
        stop_spark(spark)
    found = measured(folder / "stages.jsonl", told.began_s + _SETTLE_S, told.began_s + seconds)
    p50, p95 = (1e3 * (quantile_s(found.ages, share) or 0.0) for share in (0.5, 0.95))
    assert told.answer is not None
    results.record(
        "realtime",
        what="two stages, 1,000 rows/s",
        p50_ms=p50,
        p95_ms=p95,
        rows=told.rows_in,
        exact=told.answer.exact,
        aim_ms=AIM_MS,
    )


def waits(rows: DataFrame, mean_ms: float, salt: int) -> DataFrame:
    """Exponential by the row's number, to a tenth of a millisecond: whole ones, and the rest drawn."""
    drawn = F.expr(f"(abs(xxhash64(id, {salt})) % 1000003 + 1) / 1000004D")
    ms = F.round(-F.log(drawn) * mean_ms).cast("long")
    slept = F.expr("java_method('java.lang.Thread', 'sleep', ms) IS NOT NULL")
    return rows.withColumn("ms", ms).where(slept).select("id")


def pipeline() -> Pipeline:
    made = Pipeline("waiting")
    stream = made.operator("take", lambda rows: rows.select("id"), made.source("rows", "id long"))
    for salt, (name, mean_ms) in enumerate(WAITS_MS.items()):
        stream = made.operator(name, partial(waits, mean_ms=mean_ms, salt=salt), stream)
    made.sink("out", stream)
    return made


@contextmanager
def poisson(feed: TopicFeed) -> Iterator[None]:
    """Rows at random moments, from a thread."""
    ended, dice = threading.Event(), np.random.default_rng(7)

    def run() -> None:
        due_s = time.time()
        while not ended.is_set():
            due_s += float(dice.exponential(1 / POISSON_PER_S))
            time.sleep(max(due_s - time.time(), 0.0))
            feed.append(pa.table({"id": [feed.rows]}))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        feed.flush()


def predicted_s(running: RealTimeRunning, at: Measured, k: Sequence[int]) -> float:
    """GI/G/k, with service times and their variability as measured; Poisson arrivals."""
    topology = running.graph.topology()
    operators = tuple(
        o.with_figures(at.stages[o.name].service_per_s or 1e6, 1.0, at.stages[o.name].service_scv or 1.0, None)
        for o in topology.operators
    )
    arrivals = np.full(len(operators), POISSON_PER_S)
    stations = Stations.of(topology.with_operators(operators), arrivals, POISSON_PER_S)
    return float(stations.total_mean_s(np.array(k, dtype=np.int64)))


def busiest_of(at: Measured, k: Mapping[str, int]) -> float:
    """The busy share of the busiest stage, at most 99%."""
    return min(max(POISSON_PER_S / (at.stages[name].service_per_s or 1e6) / count for name, count in k.items()), 0.99)


def allocations(kafka: str, folder: Path, seconds: float) -> None:
    """Part two."""
    spark = spark_session("local[11]", {"spark.driver.memory": "1g"})
    try:
        found = _each(spark, kafka, folder, seconds)
    finally:
        stop_spark(spark)
    right, pairs = pairs_in_order([(float(one["predicted_ms"]), float(one["mean_ms"])) for one in found])
    for one in found:
        results.record("realtime", what="six allocations", in_order=right, pairs=pairs, **one)


def _each(spark: SparkSession, kafka: str, folder: Path, seconds: float) -> list[dict[str, float | str]]:
    made = pipeline()
    add_connector(spark)
    source, sink = (KafkaTopic(kafka, f"realtime.{end}", 1) for end in ("in", "out"))
    feed = TopicFeed(source)
    make_topic(sink)
    steps = stages_of(made)
    program = Program(made.name, steps, partial(declared, source=made.sources["rows"], topic=source), sink)
    out: list[dict[str, float | str]] = []
    first = dict(zip(WAITS_MS, ALLOCATIONS[0], strict=True))
    with RealTimeRunning(spark, program, folder, graph_of(made, steps, 1), source, first, 11) as running, poisson(feed):
        time.sleep(20.0)  # it compiles
        basis: Measured | None = None
        for check, score in ALLOCATIONS:
            want = {"take": 1, "check": check, "score": score}
            if running.running != want:
                running.set_plan(want)
                running.wait_for(want)
            began_s = time.time() + _SETTLE_S
            time.sleep(_SETTLE_S + seconds)
            running.check()
            now = measured(running.layout.stages, began_s, time.time())
            basis = basis or now
            pause_s = running.pauses_s[-1] if running.pauses_s else None
            out.append(
                {
                    "allocation": f"{check}:{score}",
                    "predicted_ms": 1e3 * predicted_s(running, basis, (1, check, score)),
                    "mean_ms": 1e3 * now.mean_s,
                    "busiest": (busiest := busiest_of(basis, {"check": check, "score": score})),
                    "stall_ms": 1e3 * statistics.median(now.stalls_s or [0.0]),
                    "stalls_add_ms": 1e3 * now.after_stalls_s(busiest),
                    "rows": sum(w for _, w in now.ages),
                    **({"pause_ms": 1e3 * pause_s} if pause_s is not None else {}),
                }
            )
            sys.stderr.write(f"{out[-1]}\n")
    return out


@contextmanager
def broker(folder: Path) -> Iterator[str]:
    """The address of a real broker, as the tests start it."""
    code = runpy.run_path(str(_TESTS / "kafka" / "broker.py"))
    one = code["Broker"](folder, code["free_port"]())
    one.up()
    try:
        yield one.address
    finally:
        one.down()


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--seconds", type=float, default=25.0)
    asked.add_argument("--part", choices=("latency", "allocations"))
    given = asked.parse_args()
    with tempfile.TemporaryDirectory() as place, broker(Path(place) / "kafka") as kafka:
        if given.part != "allocations":
            latency(kafka, Path(place) / "latency", given.seconds)
        if given.part != "latency":
            allocations(kafka, Path(place) / "allocations", given.seconds)


if __name__ == "__main__":
    main()
