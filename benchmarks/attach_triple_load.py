"""A load that rises and falls on a standalone cluster of local workers: attached, dynamic allocation, fixed peak size.

    python benchmarks/attach_triple_load.py [--shapes x3,burst,match] [--arms attached,dynamic,fixed,attached:ds2]
        [--repeats 3] [--promise 30] [--calm 40] [--peak 60] [--after 140]

The same unchanged application (``attach_app.py``: state, and rows that wait some milliseconds each), the same feed:

    x3       calm, three times that, calm
    burst    four times the calm load, in the middle tenth of the same time
    match    five generated hours of a World Cup day with one match, compressed into the same time

Arms: ``attached`` (by sluicegate's policy), ``attached:POLICY`` (by another of the catalogue), ``dynamic`` (Spark's own
dynamic allocation), ``fixed`` (executors for the peak, held all the time). A row's latency is from its birth to the
moment its batch is in the sink. Executor-seconds are executors registered, looked at every half second. Aim: at least
99% of the rows within the promise at 60% of the peak. A promise can only be kept through a jump if it leaves time for
what no controller can shorten: executors that start, and the batch under way when it jumps.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from urllib.request import urlopen

import numpy as np
import pyarrow.dataset as ds

import results
from sluicegate.lab.reproduce.eight_workloads import world_cup
from sluicegate.spark.attach.options import Options, spark_settings
from sluicegate.spark.cluster.daemons import free_port
from sluicegate.spark.cluster.java import QUICK_JAVA
from sluicegate.spark.cluster.secret import properties_file
from sluicegate.spark.cluster.standalone import Cluster

EXECUTORS, CALM_PER_S, WAIT_MS = 3, 45, 10
"""One slot does some 75 rows a second: one carries the calm load, three carry three times that."""
WARM_UP_S = 30.0
"""What starting costs is no part of the comparison."""
SIZES = {
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.cores.max": str(EXECUTORS),
    "spark.sql.shuffle.partitions": "6",
    "spark.driver.extraJavaOptions": QUICK_JAVA,
    "spark.executor.extraJavaOptions": QUICK_JAVA,
    "spark.driver.host": "127.0.0.1",
}
DYNAMIC = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.minExecutors": "1",
    "spark.dynamicAllocation.maxExecutors": str(EXECUTORS),
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
}


Shape = Callable[[float], float]
"""From seconds since the beginning to the load over the calm one."""


def shape_named(name: str, calm_s: float, peak_s: float, after_s: float) -> Shape:
    """A load over time; all shapes take as long, and none has more than the executors of the peak sustain."""
    whole_s = calm_s + peak_s + after_s
    if name == "x3":
        return lambda at_s: 3.0 if calm_s <= at_s < calm_s + peak_s else 1.0
    if name == "burst":
        return lambda at_s: 4.0 if 0.45 * whole_s <= at_s < 0.55 * whole_s else 1.0
    if name == "match":
        minutes = world_cup(1440)[750:1050]
        return lambda at_s: float(
            3.0 * np.interp(at_s / whole_s * len(minutes), np.arange(len(minutes)), minutes) / minutes.max()
        )
    raise SystemExit(f"no shape {name}: there are x3, burst, match")


def settings_of(arm: str, record: Path, promise_s: float) -> dict[str, str]:
    kind, _, policy = arm.partition(":")
    if kind == "attached":
        options = Options((f"p95={promise_s:g}s",), (1, EXECUTORS), policy or "sluicegate", folder=str(record))
        return {**spark_settings(options), "spark.sluicegate.interval_s": "1"}
    return DYNAMIC if arm == "dynamic" else {"spark.executor.instances": str(EXECUTORS)}


class Feed:
    """Files of rows, each row with its number and the moment of its birth."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.per_s, self.rows, self.ended = folder, float(CALM_PER_S), 0, threading.Event()
        folder.mkdir()

    def run(self) -> None:
        number = 0
        while not self.ended.wait(0.5):
            lines = [json.dumps({"v": self.rows + row, "born": time.time()}) for row in range(round(self.per_s / 2))]
            draft = self.folder.parent / "draft"
            draft.write_text("\n".join(lines) + "\n", encoding="utf-8")
            draft.rename(self.folder / f"{number:06d}.json")
            self.rows, number = self.rows + len(lines), number + 1


def executors(port: int) -> int | None:
    """Executors that the application has, by Spark's own page of it."""
    try:
        base = f"http://127.0.0.1:{port}/api/v1/applications"
        application = json.loads(urlopen(base, timeout=2).read())[0]["id"]
        found = json.loads(urlopen(f"{base}/{application}/executors", timeout=2).read())
        return sum(1 for one in found if one["id"] != "driver" and one["isActive"])
    except (OSError, ValueError, IndexError):
        return None


def run(arm: str, url: str, cluster: Path, promise_s: float, shape: Shape, whole_s: float) -> dict[str, float]:
    base = Path(tempfile.mkdtemp(prefix=f"attach-{arm.replace(':', '-')}-"))
    feed, port = Feed(base / "in"), free_port()
    everything = {**SIZES, **settings_of(arm, base / "record", promise_s), "spark.ui.port": str(port)}
    words = [word for key, value in everything.items() for word in ("--conf", f"{key}={value}")]
    app = [
        str(Path(__file__).with_name("attach_app.py")),
        *(str(base / x) for x in ("in", "out", "checkpoint", "stop")),
    ]
    command = [str(Path(sys.executable).with_name("spark-submit")), "--master", url]
    command += ["--properties-file", str(properties_file(cluster)), *words, *app, str(WAIT_MS)]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    thread = threading.Thread(target=feed.run, daemon=True)
    with (base / "log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        try:
            while len(list((base / "out").glob("batch=*/_SUCCESS"))) < 1:
                if process.poll() is not None:
                    raise RuntimeError((base / "log").read_text()[-2000:])
                if not thread.is_alive():
                    thread.start()
                time.sleep(0.2)
            time.sleep(WARM_UP_S)
            began_s, held, before_s, sizes = time.time(), 0.0, time.time(), list[int]()
            while (now_s := time.time()) < began_s + whole_s:
                found = executors(port) or (sizes[-1] if sizes else 0)
                sizes.append(found)
                held += found * (now_s - before_s)
                before_s = now_s
                feed.per_s = CALM_PER_S * shape(now_s - began_s)
                time.sleep(0.5)
            ended_s = time.time()
            feed.ended.set()
            thread.join()
            (base / "stop").touch()
            process.wait(120)
        finally:
            feed.ended.set()
            process.kill()
    told = judged(base, feed, promise_s, began_s, ended_s)
    shutil.rmtree(base, ignore_errors=True)
    moves = sum(before != after for before, after in pairwise(sizes))
    share = round(held / EXECUTORS / (ended_s - began_s), 3)
    return {**told, "executor_s": round(held, 1), "share_of_peak": share, "moves": moves}


def judged(base: Path, feed: Feed, promise_s: float, began_s: float, ended_s: float) -> dict[str, float]:
    """Rows born within the time that counts: how many were in the sink in time; and whether each is there once."""
    numbers: list[int] = []
    ages: list[float] = []
    ends = sorted(path.stat().st_mtime for path in (base / "out").glob("batch=*/_SUCCESS"))
    for batch in (base / "out").glob("batch=*"):
        there_s = (batch / "_SUCCESS").stat().st_mtime
        for row in ds.dataset(batch, format="parquet").to_table().to_pylist():
            numbers.append(row["v"])
            ages += [there_s - row["born"]] if began_s <= row["born"] < ended_s - promise_s else []
    within = [end for end in ends if began_s <= end <= ended_s]
    return {
        "exact": float(sorted(numbers) == list(range(feed.rows))),
        "kept_share": round(sum(age <= promise_s for age in ages) / len(ages), 4),
        "p95_s": round(statistics.quantiles(ages, n=20)[-1], 2),
        "longest_gap_s": round(max((b - a for a, b in pairwise(within)), default=0.0), 2),
    }


def main(repeats: int, promise: float, calm: float, peak: float, after: float, arms: str, shapes: str) -> None:
    cluster = Cluster(Path(tempfile.mkdtemp(prefix="attach-cluster-")), patience_s=300.0)
    try:
        url = cluster.up(workers=EXECUTORS, memory="512m").url
        for _ in range(repeats):
            for name in shapes.split(","):
                shape = shape_named(name, calm, peak, after)
                for arm in arms.split(","):
                    found = run(arm, url, cluster.folder, promise, shape, calm + peak + after)
                    load = {"shape": name, "calm_s": calm, "peak_s": peak, "after_s": after, "calm_per_s": CALM_PER_S}
                    results.record("attach_triple_load", arm=arm, promise_s=promise, **load, **found)
                    print(name, arm, found, flush=True)
    finally:
        cluster.down()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--promise", type=float, default=30.0)
    parser.add_argument("--calm", type=float, default=40.0)
    parser.add_argument("--peak", type=float, default=60.0)
    parser.add_argument("--after", type=float, default=140.0)
    parser.add_argument("--arms", default="attached,dynamic,fixed")
    parser.add_argument("--shapes", "--shape", default="x3", help="of x3, burst, match")
    main(**vars(parser.parse_args()))
