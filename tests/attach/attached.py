"""An attached session without a controller, and the plan that a test writes in its place."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from sluicegate.runlog.files import write_whole
from sluicegate.spark.session import spark_session

PARTITIONS = 6
MOVES = (3, 6, 1, 5, 2, 4, 6)
"""Tasks of batch 0, 1, 2 ...: of ``PARTITIONS`` state partitions, up and down."""


def attached_session(
    folder: Path, settings: Mapping[str, str] | None = None, master: str = "local[4]", kafka: bool = False
) -> SparkSession:
    return spark_session(
        master,
        {
            "spark.driver.memory": "1g",
            "spark.plugins": "sluicegate.attach.SluicegatePlugin",
            "spark.sluicegate.folder": str(folder),
            "spark.sluicegate.controller": "none",
            "spark.sql.shuffle.partitions": str(PARTITIONS),
            **(settings or {}),
        },
        "attached",
        kafka,
    )


def move_every_batch(folder: Path, queries: Iterable[str], moves: tuple[int, ...] = MOVES) -> None:
    """The plan: so many tasks at batch 0, 1, 2 ... for every query named; waits until it is in force."""
    write_plan(folder, {name: {"processors": 1, "by_batch": moves} for name in queries})


def write_plan(folder: Path, queries: Mapping[str, Mapping[str, Any]], executors: int = 0) -> None:
    """Write the plan; where this process is the driver, wait until it is in force."""
    java: Any = SparkContext._jvm
    read_from = str(folder) if _attachment() is None else java.sluicegate.attach.Attachment.folder()
    assert read_from == str(folder), f"the attached application has the folder {read_from}"
    before = _plan_read()
    put_plan(folder, queries, executors)
    assert until(lambda: _attachment() is None or _plan_read() != before)


def put_plan(folder: Path, queries: Mapping[str, Mapping[str, Any]], executors: int = 0) -> None:
    """Write the plan and wait for nothing."""
    write_whole(folder / "plan.json", json.dumps({"version": 1, "operators": queries, "executors": executors}))


def drop_plan(folder: Path) -> None:
    """Remove the plan, and wait until the driver, this process, has seen that."""
    (folder / "plan.json").unlink()
    assert until(lambda: _plan_read() is None)


def _attachment() -> Any:
    """The driver's side of an attached application, if this process is one and attached; no public method names it."""
    java: Any = SparkContext._jvm
    if java is None:
        return None
    current = java.java.lang.Class.forName("sluicegate.attach.Attachment").getDeclaredField("current")
    current.setAccessible(True)
    return current.get(None)


def _plan_read() -> str | None:
    """The stamp of the plan that the driver read last, once it has read all of it; ``None`` if there was none."""
    attachment = _attachment()
    if attachment is None:
        return None
    stamp = attachment.getClass().getDeclaredField("planStamp")
    stamp.setAccessible(True)
    found = stamp.get(attachment)
    return None if found is None else str(found)


def batches(folder: Path, query: str) -> list[dict[str, Any]]:
    """What was noted of a query's batches; a line that is still being written is not there yet."""
    log = folder / "operators" / query / "batches.jsonl"
    whole = log.read_text().rpartition("\n")[0] if log.exists() else ""
    return [json.loads(line) for line in whole.splitlines()]


def until(done: Callable[[], bool], timeout_s: float = 180.0) -> bool:
    """Whether it came true in time."""
    end_s = time.monotonic() + timeout_s
    while not done():
        if time.monotonic() > end_s:
            return False
        time.sleep(0.1)
    return True
