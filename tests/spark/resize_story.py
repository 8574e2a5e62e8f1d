"""A pipeline that runs while executors and a node come and go and executors are killed; k moves all the while.

Run as a program, it tells what it saw as JSON. A program of its own, since a process has one Spark application, and
other tests have theirs.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from sluicegate.errors import Infeasible
from sluicegate.lab.apps import wordcount
from sluicegate.spark.act.executors import DECOMMISSION_CONF, Executors
from sluicegate.spark.act.nodes import LocalNodes
from sluicegate.spark.act.scheduler import Executor
from sluicegate.spark.cluster.java import QUICK_JAVA
from sluicegate.spark.cluster.standalone import Cluster
from sluicegate.spark.cluster.waiting import wait_until
from sluicegate.spark.edges.folder import FolderEdge
from sluicegate.spark.pipeline.runtime import Running, start
from sluicegate.spark.session import spark_session

PATIENCE_S = 300.0
LINES_A_TABLE = 40
NEWS_S = 0.5
"""How long the driver may take to hear of a task that has ended."""
KILLS = 2
GONE = "executor_127.0.0.99_99"
SPREAD_S = 40.0
SIZES = {
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.driver.extraJavaOptions": QUICK_JAVA,
    "spark.executor.extraJavaOptions": QUICK_JAVA,
    # on a machine that is busy with other things a task may have to wait for its host for long
    "spark.locality.wait": "60s",
}


@contextmanager
def fed(running: Running) -> Iterator[None]:
    """Lines come and k of both operators moves, up and down, until the block ends."""
    feed, rng, ended = running.feed("lines"), random.Random(5), threading.Event()

    def run() -> None:
        while not ended.wait(rng.uniform(0.1, 0.5)):
            feed.append(wordcount.rows("lines", feed.rows, LINES_A_TABLE))
            running.set_processors({"split": rng.randint(1, 4), "count": rng.randint(1, 4)})

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def more_batches(running: Running) -> None:
    """Wait until two more batches of the last operator are out: the second began after this call."""
    edge = FolderEdge(running.layout.edge("count"))
    until = len(edge.numbers()) + 2
    if not wait_until(lambda: len(edge.numbers()) >= until, PATIENCE_S, 0.1):
        raise TimeoutError(f"no batch in {PATIENCE_S} s: {running.problem or running.restarts}")


def resized(executors: Executors, want: int) -> dict[str, object]:
    done = executors.resize(want, f"the story wants {want}")
    waited = executors.wait_for(want, PATIENCE_S)
    return {**asdict(done), "reached": waited.reached, "waited_s": waited.waited_s, "why": waited.why}


def killed_at_work(executors: Executors, application: str) -> str:
    """SIGKILL to an executor in the middle of a task, and wait until Spark has another in its place; its id.

    It is frozen first: only if its task is not over by then it is surely killed in it.
    """
    have, until = executors.count(), time.monotonic() + PATIENCE_S
    while (victim := caught_at_work(executors, application)) is None:
        if time.monotonic() > until:
            raise TimeoutError(f"no executor was at work in {PATIENCE_S} s")
    if not wait_until(lambda: has_replaced(executors, victim, have), PATIENCE_S, 0.1):
        raise TimeoutError(f"no executor in the place of the killed one in {PATIENCE_S} s")
    return victim


def has_replaced(executors: Executors, victim: str, have: int) -> bool:
    return victim not in {executor.id for executor in executors.all()} and executors.count() == have


def caught_at_work(executors: Executors, application: str) -> str | None:
    """The one that was killed; ``None`` where all were between two tasks."""
    busy = next((executor for executor in executors.all() if executor.active_tasks), None)
    if busy is None:
        return None
    process = process_of(busy, application)
    os.kill(process, signal.SIGSTOP)
    time.sleep(NEWS_S)
    still = any(now.id == busy.id and now.active_tasks for now in executors.all())
    os.kill(process, signal.SIGKILL if still else signal.SIGCONT)
    return busy.id if still else None


def process_of(executor: Executor, application: str) -> int:
    """The number of an executor's process; it runs on this machine.

    A child that it forks has its arguments until the child becomes another program.
    """
    told = subprocess.run(["ps", "-axww", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
    ours = ("bin/java", f"--executor-id {executor.id} ", f"--app-id {application} ")
    listed = (line.split(None, 2) for line in told.splitlines() if all(part in line for part in ours))
    parents = {int(process): int(parent) for process, parent, _ in listed}
    (found,) = (process for process, parent in parents.items() if parent not in parents)
    return found


def on_a_cluster(spark: SparkSession, nodes: LocalNodes, folder: Path) -> dict[str, object]:
    """Executors 2 -> 1 -> 3, a node drained under load, two of them killed, then -> 1; and what came out meanwhile."""
    executors = Executors(spark)
    executors.wait_for(2, PATIENCE_S)
    seen: dict[str, object] = {"shrunk": resized(executors, 1)}
    with start(wordcount.build(), spark, folder / "pipeline", fuse=False) as running:
        with fed(running):
            more_batches(running)
            (newcomer,) = nodes.start(1)
            seen["nodes"] = [vm.name for vm in nodes.running()]
            seen["grown"] = resized(executors, 3)
            seen["hosts"] = sorted(executor.host for executor in executors.all())
            more_batches(running)
            nodes.stop([newcomer])
            seen["nodes_after"] = [vm.name for vm in nodes.running()]
            seen["after_the_node"] = executors.wait_for(2, PATIENCE_S).have
            more_batches(running)
            failed, killed = executors.failed_tasks(), list[str]()
            for _ in range(KILLS):
                killed.append(killed_at_work(executors, spark.sparkContext.applicationId))
                more_batches(running)
            failed -= executors.failed_tasks()
            hosts = sorted({executor.host for executor in executors.all()})
            seen["placed"] = placed(spark, running, hosts)
            # all its state is on one of them now
            seen["spread"] = ran_on(spark, running, {}, hosts)
            seen["beside_a_gone_one"] = ran_on(spark, running, {"count": (hosts[0], GONE)}, hosts)
            seen["back"] = resized(executors, 1)
            seen["last_host"] = refused_to_drain_the_last(executors)
            more_batches(running)
            wait_until(lambda: processors(running) == [1, 2, 3, 4], PATIENCE_S, 0.5)
            failed += executors.failed_tasks()
        running.drain(PATIENCE_S)
        seen["too_many"] = asdict(executors.wait_for(9, 0.0))
        seen["restarts"] = [text for text in running.restarts if "connect" not in text]
        seen |= answer(running)
    return {**seen, "killed": killed, "failed_tasks": failed}


def placed(spark: SparkSession, running: Running, hosts: list[str]) -> list[dict[str, list[str]]]:
    """The two operators told to run on a host each, then the other way round: where they were told to, and did."""
    found: list[dict[str, list[str]]] = []
    for split, count in (hosts, hosts[::-1]):
        running.place({"split": (split,), "count": (count,)})
        more_batches(running)
        newest = max(job.jobId() for job in jobs(spark))
        more_batches(running)
        wait_until(partial(both_ran, spark, newest), PATIENCE_S, 0.1)
        found += [{"split": [split], "count": [count]}, tasks_ran_on(spark, newest)]
    return found


def ran_on(spark: SparkSession, running: Running, places: Mapping[str, tuple[str, ...]], hosts: list[str]) -> list[str]:
    """The hosts where tasks of the stateful operator run within ``SPREAD_S``, which is below Spark's own wait."""
    running.place(places)
    more_batches(running)
    newest = max(job.jobId() for job in jobs(spark))
    wait_until(lambda: tasks_ran_on(spark, newest).get("count") == hosts, SPREAD_S, 0.1)
    running.place({})
    return tasks_ran_on(spark, newest).get("count", [])


def both_ran(spark: SparkSession, after: int) -> bool:
    return len(tasks_ran_on(spark, after)) == 2


def jobs(spark: SparkSession) -> list[Any]:
    listed = spark.sparkContext._jsc.sc().statusStore().jobsList(None)
    return [listed.apply(i) for i in range(listed.size())]


def tasks_ran_on(spark: SparkSession, after: int) -> dict[str, list[str]]:
    """By operator, the hosts of the tasks that wrote its batches in jobs ``after`` that one: Spark's task metrics.

    The tasks before a shuffle are not placed; those that write are in the last stage of a job.
    """
    store: Any = spark.sparkContext._jsc.sc().statusStore()
    found: dict[str, set[str]] = {}
    for job in jobs(spark):
        if job.jobId() <= after or job.status().toString() != "SUCCEEDED":
            continue
        numbers = job.stageIds()
        stage = store.lastStageAttempt(max(numbers.apply(i) for i in range(numbers.size())))
        tasks = store.taskList(stage.stageId(), stage.attemptId(), 64)
        hosts = {str(tasks.apply(i).host()) for i in range(tasks.size())}
        found.setdefault(str(stage.schedulingPool()), set()).update(hosts)
    return {operator: sorted(hosts) for operator, hosts in sorted(found.items(), reverse=True)}


def answer(running: Running) -> dict[str, object]:
    """The sink against the words that were fed, update by update, and the logs.

    Each batch of the count takes the words where the one before it left off. So after a batch the counts add up to the
    first n words, whichever n that is, and its rows must be exactly the words among those that are new since.
    """
    edge, latest = FolderEdge(running.layout.edge("count")), Counter[str]()
    wrong, rows, whole = 0, 0, edge.numbers() == list(range(len(edge.numbers())))
    for number in edge.numbers():
        tables = [(file.rows, pq.read_table(edge.folder / file.path)) for file in edge.need(number).files]
        whole = whole and all(told == table.num_rows for told, table in tables)
        updates = [(str(row["word"]), int(row["count"])) for _, table in tables for row in table.to_pylist()]
        before, rows = latest.copy(), rows + len(updates)
        latest.update({word: count - before[word] for word, count in updates})
        lines, rest = divmod(latest.total(), wordcount.words_of(0, 1).size)
        expected = Counter(f"w{n}" for n in wordcount.words_of(0, lines).ravel().tolist())
        due = [(word, count) for word, count in expected.items() if count != before[word]]
        wrong += rest + ((Counter(updates) - Counter(due)) + (Counter(due) - Counter(updates))).total()
    logged = {name: [record.batch for record in running.records(name)] for name in ("split", "count")}
    once = all(batches == sorted(set(batches)) for batches in logged.values())
    return {
        "rows": rows,
        "wrong": wrong,
        "words_missing": running.feed("lines").rows * wordcount.words_of(0, 1).size - latest.total(),
        "log_whole": whole and once,
        "processors": processors(running),
    }


def processors(running: Running) -> list[int]:
    """Every k that a batch of the count ran with."""
    return sorted({record.processors for record in running.records("count")})


def refused_to_drain_the_last(executors: Executors) -> str:
    try:
        executors.drain_host(executors.all()[0].host)
    except Infeasible as refusal:
        return str(refusal)
    return "drained"


def in_local_mode() -> dict[str, object]:
    spark = spark_session("local[1]")
    executors = Executors(spark)
    answer = asdict(executors.resize(3, "the story wants 3"))
    seen = {**answer, "count": executors.count(), "why": executors.wait_for(3, PATIENCE_S).why}
    spark.stop()
    return seen


def main() -> None:
    cluster, folder = Cluster(Path(sys.argv[1]), PATIENCE_S), Path(sys.argv[2])
    status = cluster.status()
    if status is None:
        raise SystemExit("no cluster")
    spark = spark_session(status.url, {**SIZES, **DECOMMISSION_CONF, **cluster.settings()})
    try:
        seen = on_a_cluster(spark, LocalNodes(cluster, 1, "512m", PATIENCE_S), folder)
    finally:
        spark.stop()
    sys.stdout.write(json.dumps({**seen, "local": in_local_mode()}))


if __name__ == "__main__":
    main()
