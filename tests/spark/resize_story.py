"""A stream that runs while executors and a node come and go: run as a program, it tells what it saw as JSON.

A program of its own, since a process has one Spark application, and other tests have theirs.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr
from pyspark.sql.streaming.query import StreamingQuery

from headgate.errors import Infeasible
from headgate.spark.cluster import Cluster
from headgate.spark.executors import DECOMMISSION_CONF, Executors
from headgate.spark.nodes import LocalNodes
from headgate.spark.session import spark_session
from headgate.spark.waiting import wait_until

PATIENCE_S = 300.0
ROWS_A_FILE = 40
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SIZES = {
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.driver.extraJavaOptions": QUICK_START,
    "spark.executor.extraJavaOptions": QUICK_START,
}


class Source:
    """Writes numbered rows, a file at a time, until told to stop."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.rows = folder, 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._feed)

    def _feed(self) -> None:
        while not self._stop.wait(0.5):
            numbers = range(self.rows, self.rows + ROWS_A_FILE)
            beside = self.folder / ".new"
            beside.write_text("".join(f"{number}\n" for number in numbers))
            beside.rename(self.folder / f"{self.rows:09d}.csv")
            self.rows += ROWS_A_FILE

    @contextmanager
    def running(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._stop.set()
            self._thread.join()


def squares(spark: SparkSession, source: Path, sink: Path) -> StreamingQuery:
    """Each row squared, behind a shuffle, by tasks that take their time."""

    def publish(rows: DataFrame, batch: int) -> None:
        slow = rows.repartition(4, "number").withColumn("slept", expr("reflect('java.lang.Thread', 'sleep', 5L)"))
        slow.selectExpr("number", "number * number AS square", "slept").write.parquet(
            str(sink / f"{batch}"), mode="overwrite"
        )

    stream = spark.readStream.schema("number long").csv(str(source))
    writer = stream.writeStream.foreachBatch(publish).trigger(processingTime="1 second")
    return writer.start(checkpointLocation=f"{sink}.checkpoint")


def more_batches(query: StreamingQuery) -> None:
    """Wait until two more batches have ended: the second began after this call."""
    last = query.lastProgress
    until = (last.batchId if last else -1) + 2
    if not wait_until(lambda: (p := query.lastProgress) is not None and p.batchId >= until, PATIENCE_S, 0.1):
        raise TimeoutError(f"no batch in {PATIENCE_S} s: {query.exception()}")


def resized(executors: Executors, want: int) -> dict[str, object]:
    done = executors.resize(want, f"the story wants {want}")
    waited = executors.wait_for(want, PATIENCE_S)
    return {**asdict(done), "reached": waited.reached, "waited_s": waited.waited_s, "why": waited.why}


def on_a_cluster(spark: SparkSession, nodes: LocalNodes, folder: Path) -> dict[str, object]:
    """Executors 2 -> 1 -> 3, a node drained under load, then -> 1; the rows that came out against those put in."""
    executors = Executors(spark)
    executors.wait_for(2, PATIENCE_S)
    seen: dict[str, object] = {"shrunk": resized(executors, 1)}
    (folder / "in").mkdir()
    source = Source(folder / "in")
    with source.running():
        query = squares(spark, source.folder, folder / "out")
        more_batches(query)
        (newcomer,) = nodes.start(1)
        seen["nodes"] = [vm.name for vm in nodes.running()]
        seen["grown"] = resized(executors, 3)
        seen["hosts"] = sorted(executor.host for executor in executors.all())
        more_batches(query)
        nodes.stop([newcomer])
        seen["nodes_after"] = [vm.name for vm in nodes.running()]
        seen["after_the_node"] = executors.wait_for(2, PATIENCE_S).have
        more_batches(query)
        seen["back"] = resized(executors, 1)
        seen["last_host"] = refused_to_drain_the_last(executors)
        more_batches(query)
    query.processAllAvailable()
    query.stop()
    found = sorted(
        (row.number, row.square) for row in spark.read.parquet(*map(str, (folder / "out").iterdir())).collect()
    )
    expected = [(number, number * number) for number in range(source.rows)]
    seen["too_many"] = asdict(executors.wait_for(9, 0.0))
    return {**seen, "rows": len(expected), "exact": found == expected, "failed_tasks": executors.failed_tasks()}


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
    spark = spark_session(status.url, {**SIZES, **DECOMMISSION_CONF})
    try:
        seen = on_a_cluster(spark, LocalNodes(cluster, 1, "512m", PATIENCE_S), folder)
    finally:
        spark.stop()
    sys.stdout.write(json.dumps({**seen, "local": in_local_mode()}))


if __name__ == "__main__":
    main()
