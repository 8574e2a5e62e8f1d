"""Event time across edges: every answer is compared, row by row, with one plain Spark query over the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.spark.small_pipelines import refused

from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.elements import Stream, Write
from sluicegate.spark.pipeline.event_time import EdgeNode, event_times, is_defined_twice, marked, without_replaced
from sluicegate.spark.pipeline.runtime import Running, start

pytestmark = pytest.mark.slow

EVENTS, CLICKS = "id long, at timestamp", "id long, seen timestamp"
ROUNDS = 4
LAST_S = 71
"""Rows from then on are removed by a filter."""
WITH_STATE: dict[str, Any] = {"stateful": True, "mode": "append", "key_groups": 2}
Rows = list[tuple[object, ...]]


def timed(rows: DataFrame) -> DataFrame:
    return rows.withWatermark("at", "10 seconds")


def windows(rows: DataFrame) -> DataFrame:
    counted = rows.groupBy(F.window("at", "5 seconds")).agg(F.count("*").alias("n"), F.sum("id").alias("ids"))
    return counted.select("window", "n", "ids")


def totals(rows: DataFrame) -> DataFrame:
    """Windows of windows: what enters has left an operator with state, under another name."""
    seen = rows.withColumn("closed", F.window_time("window"))
    return seen.groupBy(F.window("closed", "20 seconds")).agg(F.sum("n").alias("n")).select("window", "n")


def firsts(rows: DataFrame) -> DataFrame:
    return rows.dropDuplicatesWithinWatermark(["id"])


def early(rows: DataFrame) -> DataFrame:
    return rows.where(F.col("at") < F.timestamp_seconds(F.lit(LAST_S)))


def clicked(rows: DataFrame) -> DataFrame:
    return rows.withWatermark("seen", "5 seconds")


def as_events(rows: DataFrame) -> DataFrame:
    return rows.select("id", F.col("seen").alias("at"))


def by_output(rows: DataFrame) -> DataFrame:
    return as_events(rows).withColumn("output", F.lit("all"))


def joined(events: DataFrame, clicks: DataFrame) -> DataFrame:
    near = F.expr("id = other AND seen >= at AND seen < at + INTERVAL 4 SECONDS")
    return events.join(clicks.withColumnRenamed("id", "other"), near, "leftOuter")


def after_join(pairs: DataFrame) -> DataFrame:
    """Reads two columns of event time, and needs one of them."""
    return windows(pairs.select("id", "at"))


def plain(events: DataFrame, clicks: DataFrame) -> dict[str, DataFrame]:
    """Each answer as one query."""
    times = timed(events)
    return {
        "windows": windows(times),
        "totals": totals(windows(times)),
        "firsts": firsts(times),
        "early_windows": windows(early(times)),
        "joined": joined(times, clicked(clicks)),
        "after_join": after_join(joined(times, clicked(clicks))),
        "both": windows(times.unionByName(as_events(clicked(clicks)))),
    }


ANSWERS = ("windows", "totals", "firsts", "early_windows", "joined", "after_join", "both")


def pipeline() -> Pipeline:
    """Every answer; what one operator has made, the others read."""
    made = Pipeline("event_time")
    times = made.operator("timed", timed, made.source("events", EVENTS))
    seen = made.operator("clicked", clicked, made.source("clicks", CLICKS))
    others = made.splitter("others", by_output, seen, outputs=["all", "none"])
    counted = made.operator("windows", windows, times, **WITH_STATE)
    made.operator("totals", totals, counted, **WITH_STATE)
    made.operator("firsts", firsts, times, **WITH_STATE)
    made.operator("early_windows", windows, made.operator("early", early, times), **WITH_STATE)
    pairs = made.operator("joined", joined, times, seen, **WITH_STATE)
    made.operator("after_join", after_join, pairs, **WITH_STATE)
    made.operator("both", windows, times | others["all"], **WITH_STATE)
    made.sink("none", others["none"])
    for name in ANSWERS:
        made.sink(name, Stream((name,)))
    return made


def two_readers(write: Write) -> Pipeline:
    """What default fusion makes of one watermarked stream that two operators read: it lies on an edge."""
    made = Pipeline("two_readers")
    times = made.operator("timed", timed, made.source("events", EVENTS))
    made.sink("windows", made.operator("windows", windows, times, **WITH_STATE), write)
    made.sink("early", made.operator("early_windows", windows, made.operator("early", early, times), **WITH_STATE))
    return made


def events_of(number: int) -> pa.Table:
    """Rows in order, one that is late and taken, one that is too late; ids that come again one and two rounds on."""
    first = 20 * (number + 2)
    at_s = [first, first + 3, first + 7, first + 11, first + 15, first + 19, first - 8, first - 25]
    ids = [100 * number + i for i in range(len(at_s))]
    ids[1], ids[4] = 7_000 + number // 2, 9_000 + number % 2
    return pa.table({"id": pa.array(ids, pa.int64()), "at": seconds(at_s)})


def clicks_of(number: int) -> pa.Table:
    """For every second event of the round; never late, and their watermark is ahead of the events'."""
    first = 20 * (number + 2)
    ids = [100 * number, 100 * number + 2, 100 * number + 5]
    return pa.table({"id": pa.array(ids, pa.int64()), "seen": seconds([first + 1, first + 9, first + 19])})


def seconds(at_s: list[int]) -> pa.Array[Any]:
    return pa.array([s * 1_000_000 for s in at_s], pa.timestamp("us", tz="UTC"))


def rows_of(frame: DataFrame) -> Rows:
    return sorted((tuple(row) for row in frame.collect()), key=repr)


@pytest.fixture(scope="module")
def expected(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Rows]:
    folder = tmp_path_factory.mktemp("plain")
    streams = []
    for name, schema in (("events", EVENTS), ("clicks", CLICKS)):
        (folder / name).mkdir()
        streams.append(spark.readStream.schema(schema).parquet(str(folder / name)))
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    queries = [
        answer.writeStream.format("memory").queryName(f"plain_{name}").outputMode("append").start()
        for name, answer in plain(*streams).items()
    ]
    spark.conf.set("spark.sql.shuffle.partitions", str(before))
    for number in range(ROUNDS):
        for name, table in (("clicks", clicks_of(number)), ("events", events_of(number))):
            pq.write_table(table, folder / name / f".{number}")
            (folder / name / f".{number}").rename(folder / name / f"{number}.parquet")
        for query in queries:
            query.processAllAvailable()
    found = {name: rows_of(spark.table(f"plain_{name}")) for name in ANSWERS}
    for query in queries:
        query.stop()
    return found


def feed(running: Running, number: int) -> None:
    running.feed("clicks").append(clicks_of(number))
    running.feed("events").append(events_of(number))
    running.drain(180)


@pytest.fixture(scope="module")
def apart(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Rows]:
    """Every operator in a query of its own, k moved at every round, stopped and started again in the middle."""
    folder = tmp_path_factory.mktemp("apart")
    for numbers in (range(ROUNDS // 2), range(ROUNDS // 2, ROUNDS)):
        with start(pipeline(), spark, folder, fuse=False) as running:
            for number in numbers:
                running.set_processors({node.name: 1 + number % 2 for node in running.graph.nodes})
                feed(running, number)
            found = {name: rows_of(running.read(name)) for name in ANSWERS}
    return found


@pytest.mark.parametrize("answer", ANSWERS)
def test_one_plain_query_gives_the_same_rows_as_operators_apart_while_k_moves_and_across_a_restart(
    answer: str, expected: dict[str, Rows], apart: dict[str, Rows]
) -> None:
    assert expected[answer]
    assert apart[answer] == expected[answer]


def test_and_the_same_as_default_fusion_with_two_readers_of_the_stream_and_a_batch_that_fails_once(
    spark: SparkSession, tmp_path: Path, expected: dict[str, Rows]
) -> None:
    calls: list[int] = []

    def fails_once(_: DataFrame, batch: int) -> None:
        calls.append(batch)
        if len(calls) == 2:
            raise OSError("the sink is away")

    with start(two_readers(fails_once), spark, tmp_path) as running:
        assert [node.name for node in running.graph.nodes] == ["timed", "windows", "early+early_windows"]
        for number in range(ROUNDS):
            running.feed("events").append(events_of(number))
            running.drain(180)
        assert calls[1] == calls[2], "the same batch again"
        for answer in ("windows", "early_windows"):
            assert rows_of(running.read(answer)) == expected[answer]


def test_the_rows_that_are_too_late_are_dropped_and_those_within_the_delay_are_not(expected: dict[str, Rows]) -> None:
    """Of the plain queries, so that what is compared with them is compared on both kinds."""
    known = {row[0] for row in expected["firsts"]}
    assert {100 * number + 6 for number in range(ROUNDS)} <= known
    assert known.isdisjoint(100 * number + 7 for number in range(1, ROUNDS))


def looped() -> Pipeline:
    made = Pipeline("round")
    times = made.operator("timed", timed, made.source("events", EVENTS))
    back = made.loop("back", EVENTS)
    turn = made.splitter(
        "turn", lambda rows: rows.withColumn("output", F.lit("out")), times | back, outputs=["out", "again"]
    )
    made.close(back, turn["again"])
    made.sink("out", turn["out"])
    return made


def test_a_watermark_and_a_loop_in_one_union_are_refused_before_the_start(spark: SparkSession, tmp_path: Path) -> None:
    told = refused(spark, looped(), tmp_path)
    assert told.startswith("operator 'turn' reads 'timed', which has a watermark, together with the loop 'back'")


def test_a_watermark_defined_twice_in_one_query_is_refused_before_the_start(
    spark: SparkSession, tmp_path: Path
) -> None:
    made = Pipeline("twice")
    times = made.operator("timed", timed, made.source("events", EVENTS))
    made.sink("again", made.operator("again", lambda rows: rows.withWatermark("at", "1 second"), times))
    assert "'timed+again' defines a watermark on a stream that has one" in refused(spark, made, tmp_path)


def test_a_watermark_that_the_reader_defines_itself_replaces_the_one_of_the_edge(spark: SparkSession) -> None:
    rows = timed(spark.readStream.format("rate").load().selectExpr("value AS id", "timestamp AS at"))
    bare = spark.readStream.format("rate").load().selectExpr("value AS id", "timestamp AS at")
    read, nodes = marked(bare, "edge", rows.schema)
    assert [type(node) for node in nodes] == [EdgeNode]
    assert event_times(read.schema) == {"at": 10_000}
    again = read.withWatermark("at", "1 second")
    assert is_defined_twice(again)
    kept = without_replaced(again, nodes)
    assert not is_defined_twice(kept)
    assert event_times(kept.schema) == {"at": 1_000}
    assert not is_defined_twice(without_replaced(windows(read), nodes))
