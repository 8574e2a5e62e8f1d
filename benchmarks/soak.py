"""An hour at the edge of capacity with a load that doubles at random: do memory, disk and latency stay flat?

Usage: soak.py [--minutes 20] [--edge 0.8] [--seed 0] [--rate LINES_PER_S]

Word count under the loop, with the dashboard beside it, which is asked every few seconds. The load is at one level or
at twice that, and changes after 20 to 90 seconds; the higher level is the share ``--edge`` of what all processors are
measured to take from a backlog at the beginning, or twice ``--rate``. Looked at every five seconds: the resident memory
of the driver (Python and Java), the controller and the dashboard, the controller's share of a core, and the bytes in
the run's folder without what the sink keeps, since that is to grow. The latency of batches that begin and end at the
lower level is compared as well. Flat: the last quarter's median is at most 5% above that of the second quarter; of
latency, 10%.

In the background: nohup nice python benchmarks/soak.py --minutes 60 > soak.log 2>&1 &
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import statistics
import tempfile
import threading
import time
import urllib.request
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

import results
from cpu import command, cpu_s, memory_mb, tree
from sluicegate.dashboard.child import Dashboard
from sluicegate.lab.apps import wordcount
from sluicegate.lab.running.outcome import Outcome
from sluicegate.lab.running.run_app import Surroundings, run_app
from sluicegate.runlog.batch_log import BatchRecord, Tail, records_of
from sluicegate.runlog.layout import Layout
from sluicegate.spark.controller import Control
from sluicegate.spark.pipeline.runtime import start
from sluicegate.spark.session import spark_session

EVERY_S, SLOTS = 5.0, 4
LEVEL_S = (20.0, 90.0)
MOST_GROWTH, MOST_DRIFT = 1.05, 1.10
BACKLOG_LINES, BACKLOG_TABLES = 50_000, 20
ANSWERS_S = 10.0
QUERY, SINK = "split+count", "count"


class Doubling:
    """Two levels of load in turns, of random lengths."""

    def __init__(self, high_per_s: float, seconds: float, seed: int) -> None:
        rng, at_s = random.Random(seed), 0.0
        self.began_s: float | None = None
        self.high_per_s, self.seconds, self.changes = high_per_s, seconds, [0.0]
        while at_s < seconds:
            at_s += rng.uniform(*LEVEL_S)
            self.changes.append(at_s)

    def doubled(self, at_s: float) -> bool:
        return bisect_right(self.changes, at_s) % 2 == 0

    def __call__(self, share: float) -> float:
        if self.began_s is None:  # rows flow from here on, some time after the run began
            self.began_s = time.time()
        return self.high_per_s * (1.0 if self.doubled(share * self.seconds) else 0.5)


class Watch:
    """Looks at a run from beside it."""

    def __init__(self, home: Path, dashboard: Dashboard) -> None:
        self._layout, self._dashboard, self._ended = Layout(home), dashboard, threading.Event()
        self._tail = Tail(self._layout.batches(QUERY))
        self._known: dict[str, int] = {}
        self.memory: dict[str, list[float]] = {
            name: [] for name in ("driver (Python)", "driver (Java)", "controller", "dashboard")
        }
        self.disk: list[float] = []
        self.batches: list[BatchRecord] = []
        self._cpu: list[tuple[float, float]] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._ended.set()
        self._thread.join()

    def controller_share(self) -> float:
        (first_s, first), (last_s, last) = self._cpu[len(self._cpu) // 4], self._cpu[-1]
        return (last - first) / (last_s - first_s)

    def latencies_s(self, load: Doubling) -> list[float]:
        """From birth to publication, of the batches that began and ended at the lower level."""
        found, began_s = list[float](), load.began_s or 0.0
        for batch in self.batches:
            moments = (batch.started_s - began_s, batch.published_s - began_s)
            if (
                batch.born.mean_s is not None
                and batch.rows
                and batch.started_s > began_s
                and not any(map(load.doubled, moments))
            ):
                found.append(batch.published_s - batch.born.mean_s)
        return found

    def _run(self) -> None:
        while not self._ended.wait(EVERY_S):
            with contextlib.suppress(OSError):  # it answers late or not at all: seen by its memory and the next look
                urllib.request.urlopen(f"{self._dashboard.url.rstrip('/')}/metrics", timeout=ANSWERS_S).read()
            self.batches += records_of(self._tail.lines())
            self.disk.append(megabytes(self._layout.folder, without=self._layout.edge(SINK) / "data"))
            for name, pid in self._pids().items():
                self.memory[name].append(memory_mb(pid))
                if name == "controller":
                    self._cpu.append((time.time(), cpu_s(pid)))

    def _pids(self) -> dict[str, int]:
        commands = {pid: command(pid) for pid in tree(os.getpid())}
        found = {"driver (Python)": os.getpid(), "dashboard": self._dashboard.pid}
        for pid, text in commands.items():
            if "sluicegate.spark.controller" in text:
                found["controller"] = pid
            elif "org.apache.spark.deploy.SparkSubmit" in text:
                found["driver (Java)"] = pid
        return found


def megabytes(folder: Path, without: Path) -> float:
    """Bytes under a folder whose files come and go: what is gone when it is looked at counts nothing."""
    total = 0
    for home, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if Path(home) / name != without]
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += (Path(home) / name).stat().st_size
    return total / 1e6


def capacity_per_s(spark: SparkSession, folder: Path) -> float:
    """Lines a second that all processors take from a backlog."""
    table = wordcount.rows("lines", 0, BACKLOG_LINES)
    with start(wordcount.build(), spark, folder, {QUERY: SLOTS}) as running:
        for _ in range(2):  # the first compiles
            feed = running.feed("lines")
            for _ in range(BACKLOG_TABLES):
                feed.append(table)
            began = time.monotonic()
            running.drain()
            took_s = time.monotonic() - began
    return BACKLOG_LINES * BACKLOG_TABLES / took_s


def quarter(values: list[float], number: int) -> float:
    size = max(len(values) // 4, 1)
    return statistics.median(values[number * size : (number + 1) * size] or values[-1:])


def growth(values: list[float]) -> float:
    return quarter(values, 3) / quarter(values, 1)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--edge", type=float, default=0.8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rate", type=float, help="lines a second at the lower level")
    given = parser.parse_args()
    spark = spark_session(f"local[{SLOTS}]", {"spark.driver.memory": "1g"})
    with tempfile.TemporaryDirectory() as folder:
        high_per_s = 2.0 * given.rate if given.rate else given.edge * capacity_per_s(spark, Path(folder) / "capacity")
        load = Doubling(high_per_s, given.minutes * 60, given.seed)
        print(f"lines a second: {high_per_s / 2:,.0f} and {high_per_s:,.0f}", flush=True)
        told, watch = watched(spark, Path(folder) / "soak", load)
    spark.stop()
    record(given.minutes, load, told, watch)
    report(load, told, watch)


def watched(spark: SparkSession, home: Path, load: Doubling) -> tuple[Outcome, Watch]:
    """Run it under the loop, with the dashboard and a watch beside it."""
    watches = list[Watch]()

    @contextmanager
    def beside(run: Path) -> Iterator[None]:
        with Dashboard(run) as dashboard:
            watches.append(Watch(run, dashboard))
            try:
                yield
            finally:
                watches[-1].end()

    control = Control(slo=("mean=3s",), budget=SLOTS)
    around = Surroundings(beside=beside)
    return run_app(wordcount.APP, spark, home, load, load.seconds, control, around=around), watches[-1]


def grown(watch: Watch) -> dict[str, float]:
    return {name: growth(values) for name, values in {**watch.memory, "disk": watch.disk}.items()}


def record(minutes: float, load: Doubling, told: Outcome, watch: Watch) -> None:
    """Append the run's line to benchmarks/results."""
    latencies_s, by_name = watch.latencies_s(load), grown(watch)
    results.record(
        "soak",
        minutes=minutes,
        high_per_s=round(load.high_per_s),
        changes=len(load.changes),
        python_growth=by_name["driver (Python)"],
        java_growth=by_name["driver (Java)"],
        controller_growth=by_name["controller"],
        dashboard_growth=by_name["dashboard"],
        disk_growth=by_name["disk"],
        disk_mb=max(watch.disk),
        latency_s=quarter(latencies_s, 3),
        latency_drift=growth(latencies_s),
        controller_share=watch.controller_share(),
        moves=told.rescales,
        exact=told.answer.exact if told.answer else None,
    )


def report(load: Doubling, told: Outcome, watch: Watch) -> None:
    """Print what is flat, and what is not."""
    latencies_s, by_name = watch.latencies_s(load), grown(watch)
    print(f"exact: {told.answer.exact if told.answer else None}; {told.rows_in:,} rows, {told.rescales} moves")
    for name, values in {**watch.memory, "disk": watch.disk}.items():
        flat = "flat" if by_name[name] <= MOST_GROWTH else "grows"
        print(f"{name:16} second quarter {quarter(values, 1):8.1f} MB, last {quarter(values, 3):8.1f}: {flat}")
    drifts = "does not drift" if growth(latencies_s) <= MOST_DRIFT else "drifts"
    print(f"latency {quarter(latencies_s, 1):.2f} s, last {quarter(latencies_s, 3):.2f} s: {drifts}")
    print(f"controller's processor time: {watch.controller_share():.2%} of a core")


if __name__ == "__main__":
    main()
