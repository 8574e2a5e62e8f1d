"""Operators that fail: a service that is down, code that is wrong for a row, a file that is gone; the others go on."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.spark.small_pipelines import ids_of, numbers, same, simple

from sluicegate.cli.app import run
from sluicegate.errors import BadInput
from sluicegate.runlog.batch_log import Tail
from sluicegate.runlog.failures import read_failures
from sluicegate.runlog.plan_file import PlanFile
from sluicegate.spark.cluster.waiting import wait_until
from sluicegate.spark.controller import Control
from sluicegate.spark.edges.backlog import Backlog
from sluicegate.spark.edges.folder import FolderEdge
from sluicegate.spark.edges.offsets import last_committed
from sluicegate.spark.edges.spoiled import EdgeSpoiled
from sluicegate.spark.pipeline import recovery
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.failures import OperatorFailed
from sluicegate.spark.pipeline.runtime import Running, start
from sluicegate.spark.supervisor import Supervisor

pytestmark = pytest.mark.slow

DOWN_S, MOST_DOWN_S = 10.0, 120.0
"""The service is down so long, and on a busy machine until all has happened that is looked for."""
MOST_BEHIND, MOST_ROWS, LUMP = 60, 20, 10
SIDE = 1_000_000


class Doubling:
    """A service on this machine that doubles a number, and can be down."""

    def __init__(self) -> None:
        self._listening: socket.socket | None = None
        self.port = 0

    def up(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", self.port), reuse_port=False)
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._serve, args=(self._listening,), daemon=True).start()

    def down(self) -> None:
        if self._listening is not None:
            self._listening.shutdown(socket.SHUT_RDWR)
            self._listening.close()

    @staticmethod
    def _serve(listening: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                caller, _ = listening.accept()
                with caller, caller.makefile("rw") as text:
                    for line in text:
                        text.write(f"{2 * int(line)}\n")
                        text.flush()


def doubled_by(port: int) -> Any:
    def call(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with socket.create_connection(("127.0.0.1", port), 5) as service, service.makefile("rw") as text:
            for batch in batches:
                answers = []
                for number in batch.column(0).to_pylist():
                    text.write(f"{number}\n")
                    text.flush()
                    answers.append(int(text.readline()))
                yield pa.RecordBatch.from_arrays([pa.array(answers, pa.int64())], ["id"])

    return call


def in_a_row(port: int) -> Pipeline:
    """Three queries in a row, the middle one calls the service; the last one reads another source too."""
    pipeline = Pipeline("in_a_row")
    lines, side = pipeline.source("lines", "id long"), pipeline.source("side", "id long")
    first = pipeline.operator("first", lambda frame: frame.selectExpr("id + 1 AS id"), lines, fuse=False)
    call = pipeline.operator("call", lambda frame: frame.mapInArrow(doubled_by(port), "id long"), first, fuse=False)
    pipeline.sink("out", pipeline.operator("last", same, call | side, fuse=False))
    return pipeline


@dataclass(slots=True)
class Story:
    batches: dict[str, tuple[int, int]] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    status: dict[str, Any] = field(default_factory=dict)
    shown: str = ""
    most_behind: int = 0
    fed: tuple[int, int] = (0, 0)
    found: list[int] = field(default_factory=list)
    restarts: list[str] = field(default_factory=list)
    left: int = -1
    ticks: list[list[str]] = field(default_factory=list)


@pytest.fixture(scope="module")
def story(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Story:
    seen, folder, service = Story(), tmp_path_factory.mktemp("service") / "run", Doubling()
    service.up()
    control = Control(slo=("mean=3s",), budget=4, interval_s=1.0)
    with start(in_a_row(service.port), spark, folder) as running, Supervisor(running.layout, control):
        feeds = running.feed("lines"), running.feed("side")
        plan = PlanFile(running.layout.plan)
        plan.change({"first": replace(plan.read().of("first"), most_rows=MOST_ROWS, most_behind=MOST_BEHIND)})
        for _ in range(2):
            _feed(feeds)
            running.drain()
        service.down()
        _while_down(seen, running, feeds)
        service.up()
        running.drain(120.0)
        seen.ticks = [json.loads(line)["failing"] for line in Tail(running.layout.ticks).lines()]
        wait_until(lambda: not read_failures(running.layout.failures), 60.0, 0.2)
        seen.left = len(read_failures(running.layout.failures))
        seen.found = ids_of(running.read("last"))
        seen.fed = feeds[0].rows, feeds[1].rows
    seen.restarts = running.restarts
    service.down()
    return seen


def _feed(feeds: tuple[Any, Any]) -> None:
    feeds[0].append(numbers(LUMP, feeds[0].rows))
    feeds[1].append(numbers(LUMP, SIDE + feeds[1].rows))


def _while_down(seen: Story, running: Running, feeds: tuple[Any, Any]) -> None:
    layout = running.layout
    before, began_s = _batches(running), time.monotonic()
    backlog = Backlog(FolderEdge(layout.edge("first")), (layout.checkpoint("call"),))
    tried = set[int]()

    def enough() -> bool:
        now, ticks = _batches(running), map(json.loads, Tail(layout.ticks).lines())
        moved = now["first"] - before["first"] >= 2 and now["last"] - before["last"] >= 5
        noted = len(tried - {1}) >= 3 and sum(bool(tick["failing"]) for tick in ticks) >= 3
        return moved and noted and seen.most_behind > MOST_BEHIND

    while (down_s := time.monotonic() - began_s) < DOWN_S or (not enough() and down_s < MOST_DOWN_S):
        _feed(feeds)
        time.sleep(0.4)
        seen.most_behind = max(seen.most_behind, backlog.rows())
        failing = read_failures(layout.failures)
        tried |= {one.tries for one in failing}
        seen.lines += [one.line(time.time()) for one in failing]
        running.check()
    seen.batches = {name: (before[name], after) for name, after in _batches(running).items()}
    with contextlib.redirect_stdout(_Kept()) as kept:
        assert run(["status", str(layout.folder), "--json"]) == 0
        seen.status, kept.text = json.loads(kept.text), ""
        assert run(["status", str(layout.folder)]) == 0
        assert run(["top", str(layout.folder)]) == 0
    seen.shown = kept.text


class _Kept:
    """Standard output as text."""

    def __init__(self) -> None:
        self.text, self.encoding = "", "utf-8"

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None: ...

    def isatty(self) -> bool:
        return False


def _batches(running: Running) -> dict[str, int]:
    return {name: last_committed(running.layout.checkpoint(name)) or 0 for name in ("first", "call", "last")}


def test_the_other_operators_go_on_while_a_service_is_down(story: Story) -> None:
    moved = {name: after - before for name, (before, after) in story.batches.items()}
    assert moved["call"] == 0
    assert moved["first"] >= 2
    assert moved["last"] >= 5


def test_the_answer_is_exact_once_the_service_is_back(story: Story) -> None:
    lines, side = story.fed
    assert lines > LUMP * 10
    assert story.found == sorted([*(2 * (i + 1) for i in range(lines)), *(SIDE + i for i in range(side))])


def test_what_waits_for_an_operator_that_is_down_is_bounded(story: Story) -> None:
    assert MOST_BEHIND < story.most_behind <= MOST_BEHIND + MOST_ROWS


def test_it_is_said_which_operator_fails_since_when_and_when_it_is_tried_next(story: Story) -> None:
    line = story.lines[-1]
    assert re.fullmatch(
        r"call: batch \d fails since \d+ s, tried (?:once|\d+ times): ConnectionRefusedError: "
        r"\[Errno 111\] Connection refused, "
        r"(next try in \d+ s|being tried again)",
        line,
    )
    assert len({line.split(" times:")[0].rsplit(" ", 1)[1] for line in story.lines if " times:" in line}) >= 3
    assert story.left == 0, "and it is over"
    (told,) = [text for text in story.restarts if "connect back" not in text]
    assert re.match(r"call: batch \d failed \(ConnectionRefusedError: ", told)
    assert told.endswith(" s, goes on")


def test_status_and_top_say_so_and_that_the_promise_is_broken(story: Story) -> None:
    assert story.status["promise_kept"] is False
    (failing,) = story.status["failures"]
    assert failing["operator"] == "call"
    assert failing["fault"] == "service"
    assert len(re.findall(r"call: batch \d fails since ", story.shown)) == 2


def test_the_log_of_the_controller_says_so_at_every_look(story: Story) -> None:
    told = [lines[0] for lines in story.ticks if lines]
    assert len(told) >= 3
    assert all(re.match(r"call: batch \d fails since ", line) for line in told)


def test_wrong_code_stops_its_operator_alone_and_is_raised_where_asked(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recovery, "_FIRST_PAUSE_S", 0.05)  # seven tries in 2 s instead of 16 s

    def wrong(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if 13 in batch.column(0).to_pylist():
                raise TypeError("13 is no number of mine")
            yield batch

    def build(code: Any = wrong) -> Pipeline:
        pipeline = Pipeline("two")
        lines = pipeline.source("lines", "id long")
        pipeline.sink("bad", pipeline.operator("bad", lambda frame: frame.mapInArrow(code, "id long"), lines))
        pipeline.sink("good", pipeline.operator("good", same, lines))
        return pipeline

    with start(build(), spark, tmp_path) as running:
        feed = running.feed("lines")
        feed.append(numbers(10))
        running.drain()
        feed.append(numbers(10, 10))
        assert wait_until(lambda: "bad" in running.stopped, 90.0, 0.2)
        feed.append(numbers(10, 20))
        assert wait_until(lambda: ids_of(running.read("good")) == list(range(30)), 90.0, 0.2), "the other goes on"
        running.wait(0.1)
        with pytest.raises(
            OperatorFailed,
            match=r"operator 'bad' failed at batch 1: TypeError: 13 is no number of mine \(its rows: edge 'lines', "
            r"manifest 1\); nothing is lost",
        ):
            running.drain()
        (stopped,) = read_failures(running.layout.failures)
        assert stopped.line(time.time()) == "bad: stopped at batch 1, tried 7 times: TypeError: 13 is no number of mine"
    with start(build(), spark, tmp_path, retry_for_s=0, when_stopped="raise") as running:
        assert wait_until(lambda: "bad" in running.stopped, 90.0, 0.1)
        with pytest.raises(OperatorFailed, match="nothing is lost: fix its code"):
            running.check()
    with start(build(lambda batches: batches), spark, tmp_path) as running:
        running.drain()
        assert ids_of(running.read("bad")) == ids_of(running.read("good")) == list(range(30))


def test_a_deleted_file_is_the_folders_fault_and_not_the_codes(spark: SparkSession, tmp_path: Path) -> None:
    with start(simple(same), spark, tmp_path) as running:
        running.feed("lines").append(numbers(10))
        running.drain()
        running.layout.hold.touch()
        running.feed("lines").append(numbers(10, 10))
        newest = FolderEdge(running.layout.edge("lines")).newest()
        assert newest is not None
        (running.layout.edge("lines") / newest.files[0].path).unlink()
        running.layout.hold.unlink()
        with pytest.raises(EdgeSpoiled) as failed:
            running.drain()
    told = str(failed.value)
    assert "\n" not in told
    assert "fix its code" not in told
    assert "restore" in told


def test_a_limit_that_is_no_time_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="operator 'work': retry_for_s is -1, give seconds"):
        simple(same, retry_for_s=-1)
    with pytest.raises(BadInput, match="when_stopped is 'shout': give one of say, raise"):
        start(simple(same), spark, tmp_path, when_stopped="shout")  # type: ignore[arg-type]


def frame_of_pandas(frame: DataFrame) -> Any:
    import pandas as pd

    return pd.DataFrame({"id": [1]})


def test_a_pandas_result_is_told_as_what_it_is(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"operator 'work' returned a pandas DataFrame: return a Spark one.*mapInPandas"):
        start(simple(frame_of_pandas), spark, tmp_path)
