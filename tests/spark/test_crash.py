"""Killed drivers, killed controllers, a full disk: the answer is exact all the same."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sluicegate.errors import EnvironmentLacks
from sluicegate.lab.apps import wordcount
from sluicegate.runlog.layout import Layout
from sluicegate.spark.cluster.waiting import wait_until
from sluicegate.spark.controller import Control
from sluicegate.spark.edges.folder import FolderEdge
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.failures import OperatorFailed
from sluicegate.spark.pipeline.runtime import start
from sluicegate.spark.supervisor import Supervisor

pytestmark = pytest.mark.slow

STORY = Path(__file__).with_name("crash_story.py")
ROWS, KILLS = 3000, 2


@dataclass(slots=True)
class Drivers:
    """Driver processes, each in a group of its own with all its children, so that none outlives the test."""

    folder: Path
    groups: list[int] = field(default_factory=list)

    def start(self, seed: int) -> subprocess.Popen[str]:
        with (self.folder / f"stderr-{seed}").open("w") as log:
            driver = subprocess.Popen(
                [sys.executable, str(STORY), str(self.folder / "pipeline"), str(ROWS), str(seed)],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        self.groups.append(driver.pid)
        return driver

    def end(self) -> None:
        for group in self.groups:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)


@pytest.fixture(scope="module")
def survived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """A run whose driver is killed again and again; what the last one answered."""
    drivers, rng = Drivers(tmp_path_factory.mktemp("crash")), random.Random(11)
    edge = FolderEdge(Layout(drivers.folder / "pipeline").edge("lines"))
    fed = []
    try:
        for seed in range(KILLS):
            driver = drivers.start(seed)
            assert driver.stdout is not None
            assert driver.stdout.readline() == "running\n", (drivers.folder / f"stderr-{seed}").read_text()
            time.sleep(rng.uniform(0.5, 4.0))
            driver.kill()
            driver.wait()
            driver.stdout.close()
            newest = edge.newest()
            fed.append(newest.rows_after if newest else 0)
        last, seed = drivers.start(KILLS), KILLS
        told, _ = last.communicate(timeout=900.0)
        assert last.returncode == 0, (drivers.folder / f"stderr-{seed}").read_text()
        yield {
            **json.loads(told.splitlines()[-1]),
            "fed_at_kills": fed,
            "stderr": (drivers.folder / f"stderr-{seed}").read_text(),
            "folder": drivers.folder / "pipeline",
        }
    finally:
        drivers.end()


def test_the_driver_was_killed_while_rows_were_in_flight(survived: dict[str, Any]) -> None:
    assert max(survived["fed_at_kills"]) > 0
    assert min(survived["fed_at_kills"]) < ROWS


def test_the_answer_is_exact_although_the_driver_was_killed_while_k_moved(survived: dict[str, Any]) -> None:
    assert (survived["lost"], survived["duplicated"], survived["exact"]) == (0, 0, True), survived["note"]


def test_a_sink_that_only_writes_has_every_row_once_by_number_and_leaves_nothing_behind(
    survived: dict[str, Any],
) -> None:
    folder: Path = survived["folder"]
    copied = Counter(
        row["text"]
        for path in folder.with_name("pipeline-copied").glob("*/*.parquet")
        for row in pq.read_table(path).to_pylist()
    )
    assert copied == Counter(wordcount.rows("lines", 0, ROWS).column("text").to_pylist())
    left = list((folder / "edges" / "copy" / "data").iterdir())
    taken = FolderEdge(folder / "edges" / "copy").numbers()
    # what was deleted while it ran; the last batches may have come after the last cleaning
    assert taken[0] > 0
    assert len(left) <= len(taken)


def test_a_driver_that_ends_leaves_no_stack_trace(survived: dict[str, Any]) -> None:
    starts = [text for text in survived["restarts"] if "connect" in text]
    found = [word for word in ("Traceback", "StackOverflow", "\tat org.apache") if word in survived["stderr"]]
    assert not found or starts, survived["stderr"]


def grows(path: Path) -> bool:
    size = path.stat().st_size if path.exists() else 0
    return wait_until(lambda: path.exists() and path.stat().st_size > size, 120.0, 0.1)


def died(supervisor: Supervisor, times: int) -> bool:
    return len(supervisor.deaths) >= times


def test_a_controller_that_is_killed_comes_again_and_the_pipeline_does_not_notice(
    spark: SparkSession, tmp_path: Path
) -> None:
    control = Control(slo=("mean=3s",), budget=4, interval_s=0.5)
    with start(wordcount.build(), spark, tmp_path) as running, Supervisor(running.layout, control) as supervisor:
        feed, ticks = running.feed("lines"), running.layout.ticks
        for kill in range(2):
            feed.append(wordcount.rows("lines", feed.rows, 500))
            assert grows(ticks), "the controller ticks"
            os.kill(supervisor.process.pid, signal.SIGKILL)
            assert wait_until(partial(died, supervisor, kill + 1), 60.0, 0.1)
        assert grows(ticks), "the last controller ticks"
        feed.append(wordcount.rows("lines", feed.rows, 500))
        running.drain()
        assert wordcount.check({"lines": feed.rows}, {"counts": running.read("count")}).exact
        assert supervisor.deaths == [-signal.SIGKILL] * 2
        assert [text for text in running.restarts if "connect" not in text] == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(disk)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("no mount command here")
    if done.returncode:
        pytest.skip(f"no small disk can be mounted here: {done.stderr.strip()}")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def wide(rows: DataFrame) -> DataFrame:
    """A thousand bytes a row that do not compress."""
    parts = [F.sha2(F.concat_ws("-", "id", F.lit(n)), 512) for n in range(8)]
    return rows.select("id", F.concat(*parts).alias("filling"))


def test_a_full_disk_is_told_in_one_line_and_with_room_made_the_run_goes_on_exactly(
    spark: SparkSession, small_disk: Path
) -> None:
    def pipeline() -> Pipeline:
        made = Pipeline("wide")
        made.sink("out", made.operator("wide", wide, made.source("lines", "id long")))
        return made

    def rows(first: int, count: int) -> pa.Table:
        return pa.table({"id": pa.array(range(first, first + count), pa.int64())})

    ballast = small_disk / "ballast"
    with start(pipeline(), spark, small_disk / "run", retry_for_s=2.0) as running:
        feed = running.feed("lines")
        feed.append(rows(0, 1000))
        running.drain()
        ballast.write_bytes(np.random.default_rng(1).bytes(16 * 2**20))
        feed.append(rows(1000, 9000))
        with pytest.raises(OperatorFailed, match=r"operator 'wide' failed at batch 1: .*No space left") as failed:
            running.drain()
        with contextlib.suppress(OSError), ballast.open("ab", buffering=0) as file:
            while file.write(b"x" * 4096):
                pass
        with pytest.raises(EnvironmentLacks, match="source 'lines': No space left on device: nothing published"):
            feed.append(rows(10_000, 50_000))
    assert "\n" not in str(failed.value)
    assert "the machine lacks something" in str(failed.value)
    assert failed.value.exit_code == 3
    ballast.unlink()
    with start(pipeline(), spark, small_disk / "run") as running:
        running.feed("lines").append(rows(10_000, 100))
        running.drain()
        found = running.read("wide").groupBy("id").count().collect()
    assert sorted((row["id"], row["count"]) for row in found) == [(i, 1) for i in range(10_100)]
