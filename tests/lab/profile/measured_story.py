"""Sustainable throughput measured on a real cluster, ended by Ctrl-C in the middle; then all that can go wrong: an
operator that throws, one that keeps all memory, a throughput that never settles, fewer nodes than asked for.

    python measured_story.py FOLDER

At the end it gives what happened as one line of JSON.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame

from sluicegate.config.capacity_file import read_capacity_file
from sluicegate.errors import EnvironmentLacks, SluicegateError
from sluicegate.lab.apps import chain
from sluicegate.lab.profile import mst_bench
from sluicegate.lab.profile.mst import MstSettings, measure_mst
from sluicegate.lab.running.app import App
from sluicegate.spark.act.nodes import LocalNodes
from sluicegate.spark.pipeline.declaration import Pipeline

# One query of 7 ms of waiting a row; samples may be far apart, since others use the machine too.
APP = replace(chain.APP, build=partial(chain.build, fuse=True))
SETTINGS = MstSettings(slots_per_node=2, batch_s=1.0, delta=0.6, validate=False)


def throws(rows: DataFrame) -> DataFrame:
    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch
            raise ValueError("no such price")

    return rows.mapInArrow(work, "id long, hops int")


def hoards(rows: DataFrame) -> DataFrame:
    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        kept = []
        for batch in batches:
            for _ in range(200):
                kept.append(bytearray(b"x") * (10 * 2**20))
                time.sleep(0.03)
            yield batch

    return rows.mapInArrow(work, "id long, hops int")


def of(function: Callable[[DataFrame], DataFrame]) -> Pipeline:
    pipeline = Pipeline("chain")
    pipeline.sink("done", pipeline.operator("parse", function, pipeline.source("calls", "id long, hops int")))
    return pipeline


class NoMore(LocalNodes):
    """A provider that has no node left."""

    def start(self, count: int) -> list[str]:
        raise EnvironmentLacks("the quota of nodes is used up")


def processes(of: str) -> list[str]:
    """The command lines that name a folder, but for this one's."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode("utf-8", errors="replace")
        except OSError:
            continue
        if of in line and "measured_story" not in line:
            found.append(line[:200])
    return found


def told(
    app: App, sizes: tuple[int, ...], folder: Path, settings: MstSettings = SETTINGS, minutes: float = 20.0
) -> str:
    """The error that a measurement ends with."""
    try:
        measure_mst(app, sizes, minutes, folder, None, settings)
    except SluicegateError as problem:
        return str(problem)
    return ""


def main(folder: Path) -> None:
    tempfile.tempdir = str(folder)
    said, leave = list[str](), threading.Event()

    def progress(text: str) -> None:
        said.append(text)
        if text.startswith("3 nodes: starting"):
            leave.set()

    seen: dict[str, object] = {"ended": "by itself"}
    try:
        measure_mst(APP, (1, 2, 3), 20.0, folder, progress, SETTINGS, leave)
    except KeyboardInterrupt:
        seen["ended"] = "by Ctrl-C"
    seen["left_running"] = processes(f"{folder}/sluicegate-mst-")
    seen["left_there"] = [path.name for path in folder.iterdir()]
    seen["file"] = asdict(read_capacity_file(folder / "chain.mst.toml"))
    again = measure_mst(APP, (1, 2), 20.0, folder, said.append, SETTINGS)
    seen["again"] = [point.rate_per_s for point in again.file.points]
    mst_bench.NODE_MB, mst_bench.NODES_S = 1500, 20.0
    seen["thrown"] = told(replace(APP, name="broken", build=partial(of, throws)), (1,), folder)
    seen["hoarded"] = told(replace(APP, name="hoards", build=partial(of, hoards)), (1,), folder)
    seen["unsettled"] = told(replace(APP, name="restless"), (1,), folder, replace(SETTINGS, delta=1e-6), 0.5)
    setattr(mst_bench, "LocalNodes", NoMore)  # noqa: B010 (mypy: a class is not assigned to)
    seen["too_few"] = told(APP, (1, 2, 3), folder)
    seen["kept"] = [point.machines for point in read_capacity_file(folder / "chain.mst.toml").points]
    seen["left_running_then"] = processes(f"{folder}/sluicegate-mst-")
    sys.stdout.write(json.dumps({**seen, "said": said}) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
