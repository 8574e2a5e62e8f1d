"""How long sinks keep rows: what is too old leaves the disk, and nothing that anybody still needs."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from sluicegate.domain.births import Births
from sluicegate.errors import BadInput
from sluicegate.runlog.layout import Layout
from sluicegate.spark.edges.folder import FolderEdge
from sluicegate.spark.edges.kept import listed
from sluicegate.spark.edges.manifest import DataFile
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.graph import Node, RunningGraph, fused
from sluicegate.spark.pipeline.retention import Retention
from sluicegate.spark.pipeline.runtime import Running, start
from sluicegate.spark.pipeline.start_checks import check_same

KEEP_S = 2.0
ROUNDS, ROWS = 6, 5


class Table:
    """A sink of the user's that fails once after it has stored a batch, as a crash would."""

    def __init__(self, fails_at: int | None = None) -> None:
        self.calls: list[int] = []
        self.by_batch: dict[int, list[int]] = {}
        self._fails_at = fails_at

    def __call__(self, batch: DataFrame, number: int) -> None:
        self.calls.append(number)
        self.by_batch[number] = [row.id for row in batch.collect()]
        if number == self._fails_at and self.calls.count(number) == 1:
            raise ConnectionError("the database hung up after it had stored the batch")

    @property
    def rows(self) -> Counter[int]:
        return Counter(row for batch in self.by_batch.values() for row in batch)


def data_of(folder: Path, stream: str) -> int:
    return len(list((folder / "edges" / stream / "data").iterdir()))


def feed_rounds(running: Running, first: int, rounds: int) -> None:
    feed = running.feed("lines")
    for at in range(first, first + rounds):
        feed.append(pa.table({"id": list(range(at * ROWS, (at + 1) * ROWS))}))
        running.drain()


def until(done: Callable[[], bool], seconds: float = 120.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if done():
            return True
        time.sleep(0.2)
    return False


def test_rows_past_their_time_leave_the_disk_and_every_row_was_written_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    brief, written, for_good = Table(), Table(fails_at=2), Table()

    def made() -> Pipeline:
        pipeline = Pipeline("three_ways")
        lines = pipeline.source("lines", "id long")
        pipeline.sink("brief", pipeline.operator("a", lambda f: f, lines, fuse=False), write=brief, keep=f"{KEEP_S}s")
        pipeline.sink("written", pipeline.operator("b", lambda f: f, lines, fuse=False), write=written, keep=False)
        pipeline.sink("for_good", pipeline.operator("c", lambda f: f, lines, fuse=False), write=for_good)
        return pipeline

    with start(made(), spark, tmp_path) as running:
        feed_rounds(running, 0, ROUNDS - 2)
        assert until(lambda: data_of(tmp_path, "a") == 1)
        assert until(lambda: data_of(tmp_path, "b") == 1)
        assert until(lambda: running.read("a").count() == 0)
        with pytest.raises(BadInput, match="keeps no rows"):
            running.read("b")
        first_left = FolderEdge(Layout(tmp_path).edge("a")).numbers()[0]
    # resumed, it goes on from the one manifest that is left
    with start(made(), spark, tmp_path) as running:
        feed_rounds(running, ROUNDS - 2, 2)
        assert running.read("c").count() == ROUNDS * ROWS
        assert {row.id for row in running.read("a").collect()} <= set(range((ROUNDS - 2) * ROWS, ROUNDS * ROWS))
        assert until(lambda: data_of(tmp_path, "a") == data_of(tmp_path, "b") == 1)
    assert first_left > 0
    every_row_once = Counter(range(ROUNDS * ROWS))
    assert brief.rows == written.rows == for_good.rows == every_row_once
    # the batch whose write failed was written again, under its number; no other was
    assert Counter(written.calls) == Counter(written.by_batch.keys()) + Counter([2])
    assert data_of(tmp_path, "c") == len(for_good.by_batch)


def _more_than(edge: FolderEdge, manifests: int) -> bool:
    return len(edge.numbers()) > manifests


def test_what_a_reader_has_not_committed_stays_however_old_it_is(spark: SparkSession, tmp_path: Path) -> None:
    """The second operator does not end its batch until the rows are far too old."""
    good = tmp_path / "good"

    def slow(frame: DataFrame, number: int) -> None:
        while not good.exists():
            time.sleep(0.1)

    pipeline = Pipeline("slow_reader")
    first = pipeline.operator("first", lambda f: f, pipeline.source("lines", "id long"), fuse=False)
    second = pipeline.operator("second", lambda f: f, first, fuse=False)
    pipeline.sink("first", first, keep=timedelta(seconds=0.2))
    pipeline.sink("second", second, write=slow)
    with start(pipeline, spark, tmp_path / "home") as running:
        edge = FolderEdge(Layout(tmp_path / "home").edge("first"))
        for at in range(3):
            running.feed("lines").append(pa.table({"id": list(range(at * ROWS, (at + 1) * ROWS))}))
            assert until(partial(_more_than, edge, at))
        time.sleep(3.0)
        assert sum(manifest.rows for manifest in edge.since(0)) == 3 * ROWS
        good.touch()
        running.drain()
        assert running.read("second").count() == 3 * ROWS
        assert until(lambda: len(edge.numbers()) == 1)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"keep": False}, "neither keeps nor writes"),
        ({"keep": "soon"}, "not a duration"),
        ({"keep": "0s"}, "above 0"),
        ({"keep": timedelta(0)}, "above 0"),
        ({"keep": 7}, "give True, False"),
        ({"keep": None}, "give True, False"),
        ({"write": "table"}, "no function"),
    ],
)
def test_a_sink_whose_options_contradict_each_other_is_refused_where_it_is_declared(
    given: dict[str, object], said: str
) -> None:
    pipeline = Pipeline("p")
    stream = pipeline.operator("a", lambda f: f, pipeline.source("lines", "id long"))
    with pytest.raises(BadInput, match=said):
        pipeline.sink("s", stream, **given)  # type: ignore[arg-type]


def test_of_two_sinks_of_a_stream_the_longer_counts() -> None:
    def graph(*keeps: bool | str) -> RunningGraph:
        pipeline = Pipeline("p")
        stream = pipeline.operator("a", lambda f: f, pipeline.source("lines", "id long"))
        for at, keep in enumerate(keeps):
            pipeline.sink(f"s{at}", stream, write=lambda batch, number: None, keep=keep)
        return RunningGraph.of(pipeline, fused(pipeline, True))

    assert graph(False, "7d").keep_s == {"a": 7 * 86_400.0}
    assert graph(False, True).keep_s == {}
    assert graph(False).keep_s == {"a": 0.0}
    assert math.isclose(RunningGraph.from_json(graph("1h").to_json()).keep_s["a"], 3600.0)


@pytest.mark.parametrize("keeps", [(True, False), ("7d", False), (False, True), (False, "7d")])
def test_a_sink_that_only_writes_from_now_on_or_did_until_now_is_refused_and_other_times_are_not(
    tmp_path: Path, keeps: tuple[bool | str, bool | str]
) -> None:
    """Rows that were kept would be deleted without having been written; those written are not there to be read."""

    def graph(keep: bool | str) -> RunningGraph:
        pipeline = Pipeline("p")
        stream = pipeline.operator("a", lambda f: f, pipeline.source("lines", "id long"))
        pipeline.sink("s", stream, write=lambda batch, number: None, keep=keep)
        return RunningGraph.of(pipeline, fused(pipeline, True))

    before, now = keeps
    layout = Layout(tmp_path)
    layout.description.write_text(graph(before).to_json(), encoding="utf-8")
    with pytest.raises(BadInput, match=r"the sinks of a changed: [^\n]+ start in a new folder$"):
        check_same(layout, graph(now))
    check_same(layout, graph("1d" if before else False))


def test_a_write_that_is_added_would_miss_rows_and_is_refused_once_there_are_any(tmp_path: Path) -> None:
    def graph(write: bool) -> RunningGraph:
        pipeline = Pipeline("p")
        stream = pipeline.operator("a", lambda f: f, pipeline.source("lines", "id long"))
        pipeline.sink("s", stream, write=(lambda batch, number: None) if write else None)
        return RunningGraph.of(pipeline, fused(pipeline, True))

    layout = Layout(tmp_path)
    layout.description.write_text(graph(False).to_json(), encoding="utf-8")
    check_same(layout, graph(True))
    (layout.checkpoint("a") / "offsets").mkdir(parents=True)
    (layout.checkpoint("a") / "offsets" / "0").touch()
    check_same(layout, graph(False))
    with pytest.raises(BadInput, match=r"the sinks of a changed: [^\n]+ never be given to `write`; [^\n]+ new folder$"):
        check_same(layout, graph(True))


def test_a_folder_whose_description_is_missing_is_refused_for_other_operators(tmp_path: Path) -> None:
    def graph(operator: str) -> RunningGraph:
        pipeline = Pipeline("p")
        pipeline.sink("s", pipeline.operator(operator, lambda f: f, pipeline.source("lines", "id long")))
        return RunningGraph.of(pipeline, fused(pipeline, True))

    layout = Layout(tmp_path)
    check_same(layout, graph("b"))
    (layout.checkpoint("a") / "offsets").mkdir(parents=True)
    check_same(layout, graph("b"))
    (layout.checkpoint("a") / "offsets" / "0").touch()
    check_same(layout, graph("a"))
    with pytest.raises(BadInput, match=r"pipeline.json is missing, and a ran there, which this pipeline does not have"):
        check_same(layout, graph("b"))


HOUR_S, KEPT_S = 3600.0, 60.0
SHOP = RunningGraph(
    "shop", ("rows",), (Node("count", ("rows",), ("counts",), False, 1, True, None),), ("rows",), {"rows": KEPT_S}
)
ALL_TAKEN = {"count": {"rows": 3}}


def _published_at(folder: Path, *at_s: float) -> FolderEdge:
    edge = FolderEdge(Layout(folder).edge("rows"))
    edge.create('{"type":"struct","fields":[]}')
    for number, published_s in enumerate(at_s):
        edge.publish(number, (DataFile(f"data/{number}-x/a.parquet", 5),), Births(), published_s)
    return edge


def test_a_clock_that_is_wrong_for_a_while_deletes_no_rows(tmp_path: Path) -> None:
    """Stepped by an hour, forth and back, while rows are a second old."""
    edge = _published_at(tmp_path, 1000.0, 1000.5, 1001.0)
    retention = Retention(Layout(tmp_path), SHOP)
    for elapsed_s, wrong_s in ((0.0, 0.0), (2.0, HOUR_S), (30.0, HOUR_S), (31.0, 0.0), (32.0, -HOUR_S), (33.0, 0.0)):
        retention.clean(ALL_TAKEN, 1001.0 + elapsed_s + wrong_s, elapsed_s)
        assert edge.numbers() == [0, 1, 2]


def test_a_clock_that_is_wrong_at_the_start_deletes_no_rows_and_rows_of_a_long_pause_leave_in_time(
    tmp_path: Path,
) -> None:
    """A machine that starts with a wrong date runs the pipeline before it has asked for the time."""
    edge = _published_at(tmp_path, 1000.0, 1000.5, 1001.0)
    retention, stays_s = Retention(Layout(tmp_path), SHOP), 2.0 * KEPT_S
    for elapsed_s in (0.0, 2.0, 50.0):
        retention.clean(ALL_TAKEN, 1e9, elapsed_s)
        assert edge.numbers() == [0, 1, 2]
    resumed = Retention(Layout(tmp_path), SHOP)
    for elapsed_s, left in ((0.0, [0, 1, 2]), (stays_s - 2.0, [0, 1, 2]), (stays_s, [2])):
        resumed.clean(ALL_TAKEN, 1001.0 + HOUR_S + elapsed_s, elapsed_s)
        assert edge.numbers() == left


def test_a_clock_that_was_put_right_lets_rows_expire(tmp_path: Path) -> None:
    """A machine that began without the time: once its clock has been right for as long as rows stay, they leave."""
    right_s = 1.8e9
    edge = _published_at(tmp_path, 1000.0, right_s + 1.0, right_s + 3.0)
    retention = Retention(Layout(tmp_path), SHOP)
    stays_s = 2.0 * KEPT_S  # as long again as it is kept
    looks = ((0.0, [0, 1, 2]), (KEPT_S, [0, 1, 2]), (KEPT_S + stays_s - 1.0, [1, 2]), (KEPT_S + stays_s, [2]))
    for elapsed_s, left in looks:
        retention.clean(ALL_TAKEN, right_s + elapsed_s if elapsed_s else 1001.0, elapsed_s)
        assert edge.numbers() == left


def test_rows_published_while_the_clock_was_back_are_read_as_long_as_those_before_them(tmp_path: Path) -> None:
    now_s = time.time()
    edge = _published_at(tmp_path, now_s - 5 * KEPT_S, now_s - 10.0, now_s - HOUR_S, now_s - 1.0)
    assert [manifest.number for manifest in listed(edge, KEPT_S)] == [1, 2, 3]
