"""Operators with processing-time timers: they fire, and a pipeline that only waits for them drains and stops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.state import GroupStateTimeout
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from sluicegate.spark.cluster.waiting import wait_until
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.runtime import Running, start

pytestmark = pytest.mark.slow

KEYS, ROWS, QUIET_MS = 5, 40, 4000
PATIENCE_S = 240.0
OPERATORS = ("groups", "timers")


def after_a_pause(frame: DataFrame) -> DataFrame:
    """How many rows a key had, told once it has been quiet for a while, by the older state API."""

    def count(key: Any, parts: Iterator[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
        if state.hasTimedOut:
            (total,) = state.get
            state.remove()
            yield pd.DataFrame({"key": [key[0]], "n": [total]})
            return
        before = state.get[0] if state.exists else 0
        state.update((before + sum(len(part) for part in parts),))
        state.setTimeoutDuration(QUIET_MS)

    return frame.groupBy("key").applyInPandasWithState(
        count, "key long, n long", "n long", "append", GroupStateTimeout.ProcessingTimeTimeout
    )


def pause_processor() -> StatefulProcessor:
    """The same with timers of one's own. Made here, so that it reaches Spark's workers by value."""

    def init(self: Any, handle: StatefulProcessorHandle) -> None:
        self.handle, self.total = handle, handle.getValueState("total", "n long")

    def take(self: Any, key: tuple[int], parts: Iterator[pd.DataFrame], timers: Any) -> Iterator[pd.DataFrame]:
        before = self.total.get()
        self.total.update(((before[0] if before is not None else 0) + sum(len(part) for part in parts),))
        for timer in self.handle.listTimers():
            self.handle.deleteTimer(timer)
        self.handle.registerTimer(timers.getCurrentProcessingTimeInMs() + QUIET_MS)
        yield from ()

    def fire(self: Any, key: Any, **timers: Any) -> Iterator[pd.DataFrame]:
        total = self.total.get()[0]
        self.total.clear()
        yield pd.DataFrame({"key": [key[0]], "n": [total]})

    methods = {"init": init, "handleInputRows": take, "handleExpiredTimer": fire, "close": lambda self: None}
    processor = type("Pause", (StatefulProcessor,), methods)()
    assert isinstance(processor, StatefulProcessor)
    return processor


def build() -> Pipeline:
    pipeline = Pipeline("pauses")
    rows = pipeline.source("rows", "key long")
    state: dict[str, Any] = {"stateful": True, "key_groups": 2, "mode": "append"}
    pipeline.sink("groups", pipeline.operator("groups", after_a_pause, rows, **state))
    pipeline.sink(
        "timers",
        pipeline.operator(
            "timers",
            lambda frame: frame.groupBy("key").transformWithStateInPandas(
                pause_processor(), "key long, n long", "Append", "ProcessingTime"
            ),
            rows,
            **state,
        ),
    )
    return pipeline


def keys(count: int) -> pa.Table:
    return pa.table({"key": pa.array([i % KEYS for i in range(count)], pa.int64())})


def told(running: Running, stream: str) -> Counter[int]:
    found: Counter[int] = Counter()
    for row in running.read(stream).collect():
        found[row["key"]] += row["n"]
    return found


def all_fired(running: Running) -> bool:
    return all(told(running, name).total() == ROWS for name in OPERATORS)


@dataclass(slots=True)
class Story:
    drained: int = 0
    ends: list[object] = field(default_factory=list)
    fired: dict[str, Counter[int]] = field(default_factory=dict)
    restarts: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def story(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Story:
    """Half of the rows, a stop while timers are set, the other half, and all timers fire."""
    seen, folder = Story(), tmp_path_factory.mktemp("timers") / "run"
    for half in (1, 2):
        running = start(build(), spark, folder)
        running.feed("rows").append(keys(ROWS // 2))
        running.drain(PATIENCE_S)
        seen.drained += 1
        if half == 2:
            wait_until(partial(all_fired, running), PATIENCE_S, 0.5)
            seen.fired = {name: told(running, name) for name in OPERATORS}
        running.stop()
        seen.ends += [running._queries[name].exception() for name in OPERATORS]
        seen.restarts += running.restarts
    return seen


def test_timers_fire_and_count_every_row_once_across_a_stop(story: Story) -> None:
    assert story.fired == {name: Counter(dict.fromkeys(range(KEYS), ROWS // KEYS)) for name in OPERATORS}


def test_a_pipeline_that_only_waits_for_timers_is_drained(story: Story) -> None:
    assert story.drained == 2


def test_it_stops_between_two_batches_without_an_error(story: Story) -> None:
    assert story.ends == [None] * 2 * len(OPERATORS)
    assert story.restarts == []  # what a stop did not wait for is in there
