"""Event time across edges: every answer is compared, row by row, with one plain Spark query over the same rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.spark.small_pipelines import refused

from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.runtime import Running, start

pytestmark = pytest.mark.slow

EVENTS, CLICKS = "id long, at timestamp", "id long, seen timestamp"
ROUNDS = 5
LAST_S = 71
"""Rows from then on are removed by a filter."""
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


def joined(events: DataFrame, clicks: DataFrame) -> DataFrame:
    near = F.expr("id = other AND seen >= at AND seen < at + INTERVAL 4 SECONDS")
    return events.join(clicks.withColumnRenamed("id", "other"), near, "leftOuter")


def plain(events: DataFrame, clicks: DataFrame) -> dict[str, DataFrame]:
    """Each answer as one query."""
    marked = timed(events)
    return {
        "windows": windows(marked),
        "totals": totals(windows(marked)),
        "firsts": firsts(marked),
        "early_windows": windows(early(marked)),
        "joined": joined(marked, clicked(clicks)),
        "both": windows(marked.unionByName(as_events(clicked(clicks)))),
    }


ANSWERS = ("windows", "totals", "firsts", "early_windows", "joined", "both")


def pipeline() -> Pipeline:
    made = Pipeline("event_time")
    marked = made.operator("timed", timed, made.source("events", EVENTS))
    seen = made.operator("clicked", clicked, made.source("clicks", CLICKS))
    others = made.operator("others", as_events, seen)
    with_state = {"stateful": True, "mode": "append", "key_groups": 2}
    counted = made.operator("windows", windows, marked, **with_state)
    made.operator("totals", totals, counted, **with_state)
    made.operator("firsts", firsts, marked, **with_state)
    made.operator("early_windows", windows, made.operator("early", early, marked), **with_state)
    made.operator("joined", joined, marked, seen, **with_state)
    made.operator("both", windows, marked | others, **with_state)
    for name in ANSWERS:
        made.sink(name, type(marked)((name,)))
    return made


def events_of(number: int) -> pa.Table:
    """Rows in order, one that is late and taken, one that is too late, and ids that come again one and two rounds on."""
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


def seconds(at_s: list[int]) -> pa.Array:
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
def fused(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Rows]:
    """As it comes: the watermarked stream lies on an edge, since several operators read it."""
    with start(pipeline(), spark, tmp_path_factory.mktemp("fused")) as running:
        for number in range(ROUNDS):
            feed(running, number)
        return {name: rows_of(running.read(name)) for name in ANSWERS}


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
def test_one_plain_query_gives_the_same_rows_as_operators_with_edges_between_them(
    answer: str, expected: dict[str, Rows], fused: dict[str, Rows]
) -> None:
    assert expected[answer]
    assert fused[answer] == expected[answer]


@pytest.mark.parametrize("answer", ANSWERS)
def test_and_with_every_operator_apart_while_k_moves_and_after_a_restart(
    answer: str, expected: dict[str, Rows], apart: dict[str, Rows]
) -> None:
    assert apart[answer] == expected[answer]
