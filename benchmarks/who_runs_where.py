"""Which host runs which operator's tasks, by Spark's own task metrics: left to Spark, and placed.

Usage: who_runs_where.py

A cluster of two local workers with two slots each, and the chain of three operators that wait, with k = 2, 2, 1: one
task more than there are slots. For each setting: how many of an operator's tasks ran on the host it was told (left to
Spark: on the first), and how long its batches took. What bounds the share is how long a task may wait for its host
(`spark.locality.wait`) while its slots are taken. First, what Spark says to an operator that asks for executors of its
own (stage-level scheduling).
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.resource import ExecutorResourceRequests, ResourceProfileBuilder, TaskResourceRequests
from pyspark.sql import SparkSession

from sluicegate.lab.apps import chain
from sluicegate.spark.act.executors import Executors
from sluicegate.spark.cluster.standalone import Cluster
from sluicegate.spark.pipeline.runtime import Running, start
from sluicegate.spark.session import spark_session

PROCESSORS = {"parse": 2, "enrich": 2, "store": 1}
ROUNDS, ROWS, EVERY_S = 25, 40, 0.4
Told = Mapping[str, tuple[str, ...]]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        cluster = Cluster(Path(folder) / "cluster", patience_s=300.0)
        try:
            url = cluster.up(workers=2, cores=2).url
            spark = spark_session(
                url, {**cluster.settings(), "spark.executor.cores": "2", "spark.ui.retainedJobs": "2000"}
            )
            Executors(spark).wait_for(2, 120.0)
            print(f"executors of its own: {own_executors(spark)}")
            compare(spark, Path(folder) / "chain")
            spark.stop()
        finally:
            cluster.down()


def own_executors(spark: SparkSession) -> str:
    def same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    wanted = (
        ResourceProfileBuilder().require(ExecutorResourceRequests().cores(1)).require(TaskResourceRequests().cpus(1))
    )
    try:
        rows = spark.range(100).mapInArrow(same, "id long", profile=wanted.build).count()
    except Exception as problem:
        return next(line for line in str(problem).splitlines() if "SparkException" in line).strip()
    return f"granted, {rows} rows"


def compare(spark: SparkSession, home: Path) -> None:
    one, two = sorted(executor.host for executor in Executors(spark).all())
    apart = {"parse": (one,), "enrich": (two,), "store": (one,)}
    swapped = {"parse": (two,), "enrich": (one,), "store": (two,)}
    crowded = dict.fromkeys(PROCESSORS, (one,))
    gone = {**apart, "parse": ("192.0.2.1",)}
    settings: list[tuple[str, Told, str]] = [
        ("Spark's choice", {}, "3s"),
        ("placed", apart, "3s"),
        ("placed, swapped", swapped, "3s"),
        ("all on one host", crowded, "3s"),
        ("all on one host", crowded, "300ms"),
        ("a host that is gone", gone, "3s"),
    ]
    with start(chain.build(), spark, home, PROCESSORS) as running:
        measured(running, {}, "3s")
        print(f"{'':22}{'wait':>6}  " + "".join(f"{name:>24}" for name in PROCESSORS))
        for name, told, wait in settings:
            ran, spent_s = measured(running, told, wait)
            cells = (_cell(ran[n], told.get(n, (one,)), spent_s[n]) for n in PROCESSORS)
            print(f"{name:22}{wait:>6}  " + "".join(f"{cell:>24}" for cell in cells), flush=True)
        answer = chain.check({"calls": running.feed("calls").rows}, {"done": running.read("store")})
        print(f"every row once: {answer.exact}")


def _cell(ran: Counter[str], told: tuple[str, ...], spent_s: float) -> str:
    return f"{sum(ran[host] for host in told)}/{ran.total()} tasks, {spent_s:.2f} s"


def measured(running: Running, told: Told, wait: str) -> tuple[dict[str, Counter[str]], dict[str, float]]:
    """Tasks by operator and host, and the mean duration of an operator's batches."""
    running.spark.sparkContext._jsc.sc().conf().set("spark.locality.wait", wait)
    running.place(told)
    before = max((job.jobId() for job in _jobs(running.spark)), default=-1)
    batches = {name: len(running.records(name)) for name in PROCESSORS}
    feed = running.feed("calls")
    for _ in range(ROUNDS):
        feed.append(chain.rows("calls", feed.rows, ROWS))
        time.sleep(EVERY_S)
    running.drain()
    time.sleep(1.0)
    spent = {n: [r.duration_s for r in running.records(n)[batches[n] :]] for n in PROCESSORS}
    return _hosts(running.spark, before), {n: sum(s) / max(len(s), 1) for n, s in spent.items()}


def _jobs(spark: SparkSession) -> list[Any]:
    listed = spark.sparkContext._jsc.sc().statusStore().jobsList(None)
    return [listed.apply(i) for i in range(listed.size())]


def _hosts(spark: SparkSession, after: int) -> dict[str, Counter[str]]:
    store: Any = spark.sparkContext._jsc.sc().statusStore()
    found: dict[str, Counter[str]] = {name: Counter() for name in PROCESSORS}
    for job in (job for job in _jobs(spark) if job.jobId() > after):
        stage = store.lastStageAttempt(job.stageIds().apply(0))
        tasks = store.taskList(stage.stageId(), stage.attemptId(), 64)
        found[str(stage.schedulingPool())].update(str(tasks.apply(i).host()) for i in range(tasks.size()))
    return found


if __name__ == "__main__":
    main()
