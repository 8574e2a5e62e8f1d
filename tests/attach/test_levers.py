"""Pace, read limits and tasks that read a source, moved while queries run; what is seen of files; rows are exact."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from tests.attach.attached import attached_session, batches, drop_plan, until, write_plan

import sluicegate
from sluicegate.runlog.layout import Layout
from sluicegate.spark.attach.application import ApplicationGround
from sluicegate.spark.attach.observing import QueryObserver

pytestmark = pytest.mark.slow

ROWS, EVERY_S = 40, 0.25
RATE_PER_S = ROWS / EVERY_S


@dataclass
class Feed:
    """A file of ``ROWS`` rows now and then."""

    folder: Path
    files: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    ended: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    thread: threading.Thread | None = None

    def start(self) -> None:
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def end(self) -> None:
        """No file comes after this, and the last one is whole."""
        self.ended.set()
        if self.thread is not None:
            self.thread.join()

    def _run(self) -> None:
        while not self.ended.wait(EVERY_S):
            self.write()

    def write(self, files: int = 1) -> None:
        with self.lock:
            for number in range(self.files, self.files + files):
                values = range(number * ROWS, (number + 1) * ROWS)
                self.counts.update(f"k{value % 7}" for value in values)
                draft = self.folder.parent / f"draft-{number}"
                draft.write_text("".join(json.dumps({"k": f"k{value % 7}", "v": value}) + "\n" for value in values))
                draft.rename(self.folder / f"{number:05d}.json")
            self.files += files


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("levers") / "record"


@pytest.fixture(scope="module")
def spark(record: Path) -> Iterator[SparkSession]:
    own = {"spark.sql.streaming.numRecentProgressUpdates": "100", "spark.default.parallelism": "50"}
    session = attached_session(record, {"spark.sluicegate.pace": "true", **own})
    yield session
    session.stop()


@pytest.fixture
def feed(tmp_path: Path) -> Iterator[Feed]:
    made = Feed(tmp_path / "in")
    made.folder.mkdir()
    yield made
    made.end()


def counting(
    spark: SparkSession, feed: Feed, name: str, most_files: int = 1000, every: str = "0 seconds"
) -> StreamingQuery:
    rows = spark.readStream.schema("k string, v long").option("maxFilesPerTrigger", most_files).json(str(feed.folder))
    writer = rows.groupBy("k").agg(F.count("*").alias("n")).writeStream.outputMode("complete").format("memory")
    writer = writer.option("checkpointLocation", str(feed.folder.parent / "checkpoint" / name))
    return writer.queryName(name).trigger(processingTime=every).start()


def ended(spark: SparkSession, feed: Feed, query: StreamingQuery) -> bool:
    """Whether all that was fed was counted once."""
    feed.end()
    query.processAllAvailable()
    query.stop()
    return {row["k"]: row["n"] for row in spark.table(query.name or "").collect()} == feed.counts


def test_the_slots_of_a_local_master_are_its_cores_whatever_parallelism_the_user_has_set(
    spark: SparkSession, record: Path
) -> None:
    assert spark.sparkContext.defaultParallelism == 50
    assert until(lambda: (record / "nodes.json").exists())
    ground = ApplicationGround.read(Layout(record), time.time())
    assert ground is not None
    assert ground.slots == 4


def test_the_load_and_the_lag_of_a_saturated_file_source_are_seen(
    spark: SparkSession, record: Path, feed: Feed
) -> None:
    query = counting(spark, feed, "slowly", most_files=1, every="1 second")
    feed.start()
    observer = QueryObserver.of(Layout(record), "slowly")
    began_s = time.time()
    assert until(lambda: len(batches(record, "slowly")) >= 5 and time.time() - began_s > 11.0)
    fed_per_s = feed.files * ROWS / (time.time() - began_s)
    ground = ApplicationGround.read(Layout(record), time.time())
    assert ground is not None
    files = ground.files["slowly"]
    seen = observer.observe(time.time(), True, None, files)
    assert seen.arrivals_per_s == pytest.approx(fed_per_s, rel=0.35)
    # by their bytes: rows with longer numbers make larger files
    assert seen.backlog_rows == pytest.approx(files.waiting * ROWS, rel=0.1)
    came = [at_s for batch in batches(record, "slowly")[1:] for at_s, _ in batch["sources"][0]["files"]]
    assert came == sorted(came)
    assert seen.sojourn is not None
    assert seen.sojourn.p95_s is not None
    assert seen.sojourn.p95_s > 3.0, "rows that wait behind a read limit are as old as they are"
    feed.end()

    def counted() -> bool:
        """What a batch under way has taken waits no more and is in no report yet."""
        ground = ApplicationGround.read(Layout(record), time.time())
        left = feed.files - sum(batch["rows"] for batch in batches(record, "slowly")) // ROWS
        return ground is not None and left - 2 <= ground.files["slowly"].waiting <= left

    assert until(counted)
    query.stop()


def test_batches_follow_the_pace_and_the_limit_of_the_plan_then_the_user_s_own_again(
    spark: SparkSession, record: Path, feed: Feed
) -> None:
    query = counting(spark, feed, "paced")
    feed.start()
    assert until(lambda: len(batches(record, "paced")) >= 2)

    def paced(every_s: float) -> list[dict[str, Any]]:
        """Batches of which the one before was already paced: the start of the next is set as a batch begins."""
        lines = batches(record, "paced")
        return [line for before, line in pairwise(lines) if before["trigger_s"] == line["trigger_s"] == every_s][1:]

    write_plan(record, {"paced": {"processors": 2, "pace_s": 2.0, "most_files": 5}})
    assert until(lambda: len(paced(2.0)) >= 4)
    begun = [line["started_s"] for line in paced(2.0)]
    # Spark starts batches at multiples of the interval: one that begins late is nearer to the next one
    assert begun[-1] - begun[0] > 2.0 * (len(begun) - 2)
    assert max(line["rows"] for line in paced(2.0)) <= 5 * ROWS
    drop_plan(record)
    before = len(batches(record, "paced"))
    feed.write(14)
    assert until(lambda: [line["trigger_s"] for line in batches(record, "paced")[before:]][-3:] == [0.0] * 3)
    assert max(line["rows"] for line in batches(record, "paced")[before:]) > 5 * ROWS
    assert ended(spark, feed, query)


def test_tasks_that_read_files_become_fewer_and_more_and_rows_stay_exact(
    spark: SparkSession, record: Path, feed: Feed
) -> None:
    feed.write(12)
    plans: dict[str, dict[str, Any]] = {
        "as_it_is": {"processors": 0},
        "fewer": {"processors": 0, "stages": {"scan": 2}},
        "more": {"processors": 0, "spread": 7},
        "more_with_state": {"processors": 3, "spread": 3},
    }
    write_plan(record, plans)
    for name in ("as_it_is", "fewer", "more"):
        rows = spark.readStream.schema("k string, v long").option("maxFilesPerTrigger", 4).json(str(feed.folder))
        writer = rows.selectExpr("k", "v * 2 AS w").writeStream.format("memory").queryName(name)
        writer.trigger(availableNow=True).start().awaitTermination(120)
        assert sorted(row["w"] for row in spark.table(name).collect()) == [2 * v for v in range(12 * ROWS)]
    rows = spark.readStream.schema("k string, v long").option("maxFilesPerTrigger", 4).json(str(feed.folder))
    counts = rows.groupBy("k").agg(F.count("*").alias("n")).writeStream.outputMode("complete").format("memory")
    counts.queryName("more_with_state").trigger(availableNow=True).start().awaitTermination(120)
    assert {row["k"]: row["n"] for row in spark.table("more_with_state").collect()} == feed.counts
    assert until(lambda: len(batches(record, "more_with_state")) >= 3)
    (record / "plan.json").unlink()
    assert [batch["tasks"] for batch in batches(record, "as_it_is")] == [4, 4, 4]
    assert [batch["tasks"] for batch in batches(record, "fewer")] == [2, 2, 2]
    assert [batch["tasks"] for batch in batches(record, "more")] == [7, 7, 7]
    stages = [[stage["tasks"] for stage in batch["stages"]] for batch in batches(record, "more_with_state")]
    assert [sorted(one) for one in stages] == [[3, 3, 4]] * 3


def test_detaching_gives_back_the_user_s_own_interval_and_limit(spark: SparkSession, record: Path, feed: Feed) -> None:
    query = counting(spark, feed, "given_back")
    feed.start()
    write_plan(record, {"given_back": {"processors": 2, "pace_s": 3.0, "most_files": 2}})
    assert until(lambda: [batch["trigger_s"] for batch in batches(record, "given_back")[-2:]] == [3.0, 3.0])
    sluicegate.detach(spark)
    first = max(one.batchId for one in query.recentProgress) + 1
    feed.write(6)  # however slow the machine is, more wait than the limit allowed

    def after() -> list[Any]:
        return [one for one in query.recentProgress if one.batchId >= first and one.numInputRows > 0]

    assert until(lambda: len(after()) >= 4), (query.exception(), query.status, query.lastProgress)
    assert max(one.numInputRows for one in after()) > 2 * ROWS
    assert ended(spark, feed, query)
    assert not [path for path in (feed.folder.parent / "checkpoint").rglob("*") if "sluicegate" in path.name]
