"""A lost executor, node and driver: how long until rows leave again, under sluicegate against Spark's own.

Usage: losses.py [--rounds N] [--losses node,executor,driver]

Spark's own is the same computation (a count by key, with state) as one plain query, in a driver with the same settings
on the same cluster of two local nodes, suffering the same loss; the two take turns. Rows come five times a second.
Recovered: a row that was fed at the moment of the loss is counted at the sink. A lost executor and node are killed and
Spark starts executors on what is left; the node is one beside which another has an executor, so that both arms lose
some of theirs and not all of them, and it comes before the executor, after whose loss Spark may have all of them on one
node. A lost driver is started again at once. Every key is counted exactly at the end.
Only ratios are worth anything: what else runs on the machine is in both.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import results
from sluicegate.lab.chaos.processes import executors_of
from sluicegate.spark.cluster.standalone import Cluster
from sluicegate.spark.cluster.waiting import wait_until
from sluicegate.spark.edges.feed import Feed
from sluicegate.spark.edges.folder import FolderEdge

_PATIENCE_S, _EVERY_S, _KEYS, _EXECUTORS = 300.0, 0.2, 50, 2
_CALM_S = 6.0
"""Of rows without any loss, before each; executors that have just started are registered by then."""
ARMS = ("plain", "sluicegate")
LOSSES = ("node", "executor", "driver")


class Arm:
    """One way of counting, with its driver in a process of its own. Every table has every key once."""

    def __init__(self, name: str, home: Path, cluster: Cluster) -> None:
        self.name, self.home, self.cluster, self.fed = name, home, cluster, 0
        self._feed: Feed | None = None
        self._read, self._most = set[Path](), [0] * _KEYS
        self._turn, self._ended = threading.Lock(), threading.Event()
        (home / "in").mkdir(parents=True)
        self._driver = self._started()
        self._feeder = threading.Thread(target=self._feed_on, daemon=True)
        self._feeder.start()

    def _started(self) -> subprocess.Popen[str]:
        script = Path(__file__).with_name("losses_driver.py")
        words = [sys.executable, str(script), self.name, str(self.home), str(self.cluster.folder)]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)
        assert process.stdout is not None
        if process.stdout.readline().strip() != "running":
            raise SystemExit(f"the driver of {self.name} did not start")
        return process

    def _feed_on(self) -> None:
        while not self._ended.wait(_EVERY_S):
            self.feed_one()

    def feed_one(self) -> int:
        """Feed a table; returns how many there are."""
        table = pa.table({"key": pa.array(range(_KEYS), pa.int64())})
        with self._turn:
            if self.name == "plain":
                draft = self.home / f"{self.fed}.parquet"
                pq.write_table(table, draft)
                draft.rename(self.home / "in" / draft.name)
            else:
                self._feed = self._feed or Feed(self.home / "run" / "edges" / "rows")
                self._feed.append(table)
            self.fed += 1
            return self.fed

    def counted(self) -> list[int]:
        """What the sink says of every key."""
        if self.name == "plain":
            paths = [path for path in self.home.glob("out/*/*.parquet") if not path.name.startswith(("_", "."))]
        else:
            edge = FolderEdge(self.home / "run" / "edges" / "count")
            paths = [edge.folder / file.path for manifest in edge.whole() for file in manifest.files]
        for path in paths:
            if path not in self._read:
                self._take(path)
        return self._most

    def _take(self, path: Path) -> None:
        try:
            read = pq.read_table(path).to_pydict()
        except (OSError, pa.ArrowInvalid):  # it is being written, or replaced by a batch that runs again
            return
        self._read.add(path)
        for key, count in zip(read["key"], read["count"], strict=True):
            self._most[key] = max(self._most[key], count)

    def until_counted(self, tables: int) -> bool:
        return wait_until(lambda: min(self.counted()) >= tables, _PATIENCE_S, 0.05)

    def calm(self) -> None:
        """Rows for some seconds, all executors there, and nothing left behind."""
        if not wait_until(lambda: len(self._executors()) >= _EXECUTORS, _PATIENCE_S, 0.2):
            raise SystemExit("executors are missing")
        time.sleep(_CALM_S)
        if not self.until_counted(self.feed_one()):
            raise SystemExit(f"{self.name} counts no more")

    def _executors(self) -> list[int]:
        return [one.pid for pid in self.cluster.worker_pids() for one in executors_of(pid)]

    def lose(self, what: str) -> float:
        """Seconds from the loss until a row fed then is counted."""
        began = time.monotonic()
        if what == "executor":
            os.kill(self._executors()[0], signal.SIGKILL)
        elif what == "node":
            nodes = [pid for pid in self.cluster.worker_pids() if executors_of(pid)]
            if len(nodes) < 2:
                raise SystemExit("all executors are on one node")
            node = nodes[0]
            for pid in [node, *(one.pid for one in executors_of(node))]:
                os.kill(pid, signal.SIGKILL)
        else:
            self._driver.kill()
            self._driver.wait()
            self._driver = self._started()
        if not self.until_counted(self.feed_one() if what != "driver" else self.fed):
            raise SystemExit(f"{self.name} did not recover from a lost {what}")
        took_s = time.monotonic() - began
        if what == "node":
            self.cluster.add_workers(1)
        return took_s

    def end(self) -> bool:
        """Stop; whether every key was counted exactly."""
        self._ended.set()
        self._feeder.join()
        exact = self.until_counted(self.fed) and set(self.counted()) == {self.fed}
        assert self._driver.stdin is not None
        self._driver.stdin.close()
        self._driver.wait(_PATIENCE_S)
        return exact


def one_round(home: Path, cluster: Cluster, losses: list[str], first: int) -> dict[str, dict[str, float]]:
    """Seconds by loss and arm; which arm begins changes from round to round."""
    found: dict[str, dict[str, float]] = {what: {} for what in losses}
    for name in (ARMS[first], ARMS[1 - first]):
        arm = Arm(name, home / name, cluster)
        for what in losses:
            arm.calm()
            found[what][name] = arm.lose(what)
            print(f"{name:10} lost {what:8} {found[what][name]:6.1f} s", flush=True)
        if not arm.end():
            raise SystemExit(f"{name}: a key was not counted exactly")
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--losses", default=",".join(LOSSES))
    given = parser.parse_args()
    ratios: dict[str, list[float]] = {}
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit("told to end"))  # or the cluster would be left
    with tempfile.TemporaryDirectory() as folder:
        cluster = Cluster(Path(folder) / "cluster", patience_s=_PATIENCE_S)
        try:
            cluster.up(workers=2, cores=2, memory="2g")
            for number in range(given.rounds):
                found = one_round(Path(folder) / str(number), cluster, given.losses.split(","), number % 2)
                for what, took_s in found.items():
                    ratio = took_s["sluicegate"] / took_s["plain"]
                    ratios.setdefault(what, []).append(ratio)
                    results.record(
                        "losses",
                        loss=what,
                        ours_s=round(took_s["sluicegate"], 2),
                        plain_s=round(took_s["plain"], 2),
                        ratio=round(ratio, 3),
                        exact=True,
                    )
        finally:
            cluster.down()
    for what, found_ratios in ratios.items():
        print(f"lost {what}: {statistics.median(found_ratios):.2f} of the plain query's time")


if __name__ == "__main__":
    main()
