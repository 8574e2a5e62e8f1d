"""A backlog of an hour: is it worked off without running out of memory, and how fast?

Usage: backlog.py [--tables 18000] [--lines 100] [--memory 600m]

Word count with the rows of an hour (five tables a second) waiting on its source, in a driver with little memory. They
are admitted in batches of at most as many rows as the plan says. Looked at: the resident memory of the driver's Java
process while the backlog is worked off, against the most while a few rows pass before it; the largest batch; the rows a
second; and whether the answer is exact.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import threading
import time
from pathlib import Path

import results
from cpu import command, memory_mb, tree
from sluicegate.lab.apps import wordcount
from sluicegate.spark.edges.feed import Feed
from sluicegate.spark.pipeline.runtime import start
from sluicegate.spark.session import spark_session

_QUERY, _PATIENCE_S, _EVERY_S = "split+count", 3600.0, 0.5
_CALM_ROUNDS = 10


class Most:
    """The most memory that Java took, in MB, while it was looked at."""

    def __init__(self) -> None:
        self.java = next(pid for pid in tree(os.getpid()) if "org.apache.spark.deploy.SparkSubmit" in command(pid))
        self.mb, self._ended = 0.0, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ended.wait(_EVERY_S):
            self.mb = max(self.mb, memory_mb(self.java))

    def end(self) -> float:
        self._ended.set()
        self._thread.join()
        return self.mb


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tables", type=int, default=18_000)
    parser.add_argument("--lines", type=int, default=100)
    parser.add_argument("--memory", default="600m")
    given = parser.parse_args()
    spark = spark_session("local[2]", {"spark.driver.memory": given.memory})
    with tempfile.TemporaryDirectory() as folder:
        home, calm = Path(folder) / "run", Most()
        with start(wordcount.build(), spark, home, {_QUERY: 2}) as running:
            for _ in range(_CALM_ROUNDS):
                feed = running.feed("lines")
                feed.append(wordcount.rows("lines", feed.rows, given.lines))
                running.drain()
        calm_mb, feed = calm.end(), Feed(home / "edges" / "lines")
        for _ in range(given.tables):
            feed.append(wordcount.rows("lines", feed.rows, given.lines))
        print(f"{feed.rows:,} rows in {given.tables:,} tables wait", flush=True)
        began, most = time.monotonic(), Most()
        with start(wordcount.build(), spark, home, {_QUERY: 2}) as running:
            running.drain(_PATIENCE_S)
            took_s, most_mb = time.monotonic() - began, most.end()
            time.sleep(1.0)
            largest = max(record.rows for record in running.records(_QUERY))
            answer = wordcount.check({"lines": feed.rows}, {"counts": running.read("count")})
            failures = len(running.restarts)
    spark.stop()
    results.record(
        "backlog",
        rows=feed.rows,
        tables=given.tables,
        memory=given.memory,
        calm_mb=round(calm_mb),
        most_mb=round(most_mb),
        largest_batch=largest,
        took_s=round(took_s, 1),
        rows_per_s=round(given.tables * given.lines / took_s),
        failures=failures,
        exact=answer.exact,
    )
    print(f"{took_s:.0f} s, {most_mb:.0f} MB at most ({calm_mb:.0f} MB before), largest batch {largest:,} rows")
    print(f"failures: {failures}; exact: {answer.exact}")


if __name__ == "__main__":
    main()
