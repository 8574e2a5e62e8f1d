"""A pipeline that another thread or a signal handler stops, and one that is waited for in vain: nothing hangs."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.spark.small_pipelines import ids_of, numbers, same, simple

from sluicegate.errors import StillWaiting
from sluicegate.spark.cluster.waiting import wait_until
from sluicegate.spark.edges.folder import FolderEdge
from sluicegate.spark.pipeline import running_queries
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.elements import Write
from sluicegate.spark.pipeline.runtime import start

pytestmark = pytest.mark.slow


def test_wait_returns_when_a_signal_handler_has_stopped_the_pipeline(spark: SparkSession, tmp_path: Path) -> None:
    running = start(simple(same), spark, tmp_path / "run")
    before = signal.signal(signal.SIGUSR1, lambda number, frame: running.stop())
    try:
        threading.Timer(1.0, signal.pthread_kill, (threading.get_ident(), signal.SIGUSR1)).start()
        running.wait(120.0)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert running.spark.streams.active == []


def test_drain_says_at_once_that_rows_wait_in_a_pipeline_that_was_stopped(spark: SparkSession, tmp_path: Path) -> None:
    running = start(simple(same), spark, tmp_path / "run")
    feed = running.feed("lines")
    feed.append(numbers(3))
    running.drain()
    running.stop()
    running.drain()  # every row has left
    feed.append(numbers(3, 3))
    began = time.monotonic()
    with pytest.raises(StillWaiting, match="was stopped: rows that wait are processed at its next start"):
        running.drain(60.0)
    assert time.monotonic() - began < 30.0
    with start(simple(same), spark, tmp_path / "run") as again:
        again.drain()
        assert ids_of(again.read("work")) == list(range(6))


def test_drain_says_that_rows_still_come_where_they_do(spark: SparkSession, tmp_path: Path) -> None:
    over = threading.Event()
    with start(simple(same), spark, tmp_path / "run") as running:
        feed = running.feed("lines")

        def feeding() -> None:
            while not over.wait(0.05):
                feed.append(numbers(3))

        thread = threading.Thread(target=feeding)
        thread.start()
        with pytest.raises(StillWaiting, match="lines is still fed: stop feeding before you drain"):
            running.drain(3.0)
        over.set()
        thread.join()
        running.drain()


def test_stop_gives_up_a_write_that_hangs_and_nothing_of_its_batch_is_published(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running_queries, "_LETS_GO_WITHIN_S", 3.0)
    hangs, goes_on, written = threading.Event(), threading.Event(), list[int]()

    def write(rows: DataFrame, number: int) -> None:
        hangs.set()
        goes_on.wait(120.0)
        written.append(number)

    def pipeline(write: Write) -> Pipeline:
        made = Pipeline("writes")
        made.sink("out", made.operator("work", same, made.source("lines", "id long")), write=write)
        return made

    running = start(pipeline(write), spark, tmp_path / "run")
    running.feed("lines").append(numbers(3))
    assert hangs.wait(60.0)
    began = time.monotonic()
    running.stop(1.0)
    assert time.monotonic() - began < 30.0
    assert running.restarts[-1] == "work: its code does not end: given up; its batch runs again at the next start"
    goes_on.set()
    assert wait_until(lambda: written == [0] and not spark.streams.active, 60.0, 0.1)
    assert FolderEdge(running.layout.edge("work")).newest() is None
    with start(pipeline(lambda rows, number: written.append(number)), spark, tmp_path / "run") as again:
        again.drain()
        assert ids_of(again.read("work")) == [0, 1, 2]
    assert written == [0, 0]
