"""`sluicegate run --mode real-time` on a real broker: refusals, a rescale by restart, and the answer, row by row."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sluicegate.errors import BadInput
from sluicegate.lab.apps.payments import app_of, build, check, rows
from sluicegate.lab.chaos.broker import Broker
from sluicegate.lab.running.app import App
from sluicegate.lab.running.load import constant
from sluicegate.lab.running.outcome import Outcome
from sluicegate.lab.running.run_realtime import Kafka, read_back, run_realtime
from sluicegate.runlog.layout import Layout
from sluicegate.spark.cluster.waiting import wait_until
from sluicegate.spark.controller import Control
from sluicegate.spark.edges.topic import KafkaTopic
from sluicegate.spark.kafka.connector import add_connector
from sluicegate.spark.kafka.edge import make_topic
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.realtime.marks import COLUMN
from sluicegate.spark.realtime.program import Program, declared
from sluicegate.spark.realtime.running import RealTimeRunning
from sluicegate.spark.realtime.stages import graph_of, stages_of
from sluicegate.spark.realtime.topics import TopicFeed

SECONDS, PER_S, WAIT_MS = 30.0, 100.0, 12
"""One task of the second stage carries 1000/12 = 83 rows a second: the run under the loop begins too small."""
ROUNDS = 2
"""Of the hash: rows cost next to nothing."""


@dataclass(frozen=True, slots=True)
class Told:
    """A run, and what it left."""

    outcome: Outcome
    fleet: list[dict[str, Any]]
    seconds: list[dict[str, Any]]


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.slow
def test_every_row_is_in_the_sink_once_though_the_stages_grow_and_shrink(
    spark: SparkSession, kafka: Broker, tmp_path: Path
) -> None:
    """Rows come all the time: before, during and after each restart."""
    pipeline = build(ROUNDS, (0, 2))
    steps, source = stages_of(pipeline), KafkaTopic(kafka.address, "moved.in", 1)
    feed, sink = TopicFeed(source), KafkaTopic(kafka.address, "moved.out", 2)
    make_topic(sink)
    add_connector(spark)
    program = Program("moved", steps, partial(declared, source=pipeline.sources["payments"], topic=source), sink)
    ended = threading.Event()

    def send() -> None:
        while not ended.wait(0.02):
            feed.append(rows("payments", feed.rows, 4))

    sending = threading.Thread(target=send, daemon=True)
    with RealTimeRunning(spark, program, tmp_path, graph_of(pipeline, steps, 1), source, {}, slots=4) as running:
        sending.start()
        for k in (3, 2):
            want = {"screen": 1, "score": k}
            running.set_plan(want)
            running.wait_for(want)
        # a batch is counted at its end
        assert wait_until(
            lambda: any(sum((one["counted"] or {}).values()) for one in lines_of(running.layout.stages)), 60.0, 0.1
        )
        ended.set()
        sending.join()
        feed.flush()
        running.drain()
    answer = check({"payments": feed.rows}, {"risks": read_back(spark, program, running.running)}, ROUNDS)
    assert answer.exact, answer
    assert len(running.pauses_s) == 2
    paused = [line for line in lines_of(running.layout.fleet) if "pause_s" in line]
    assert [line["pause_s"] for line in paused] == running.pauses_s
    told = [line["stages"]["score"] for line in lines_of(running.layout.stages) if line["stages"]["score"][0]]
    assert sum(one[1] for one in told) >= 0.002 * sum(one[0] for one in told), "each row waits 2 ms in the stage"
    counted = [line["counted"] for line in lines_of(running.layout.stages) if line["counted"]]
    assert sum(one["score"] for one in counted) < sum(one["screen"] for one in counted), "payments of nothing go"


@pytest.fixture(scope="module")
def story(spark: SparkSession, kafka: Broker, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """The second stage begins with one task, which cannot keep up: the loop has to give it more, by a restart."""
    folder = tmp_path_factory.mktemp("payments")
    app = app_of(rounds=ROUNDS, waits_ms=(0, WAIT_MS), calm_per_s=PER_S)
    control = Control("drs-gigk", ("mean=1s",), budget=4, cooldown_s=8.0)
    outcome = run_realtime(app, spark, folder, constant(PER_S), SECONDS, control, kafka=Kafka(kafka.address))
    return Told(outcome, lines_of(Layout(folder).fleet), lines_of(Layout(folder).stages))


@pytest.mark.slow
@pytest.mark.long
def test_the_loop_gives_a_stage_more_tasks_by_a_restart_and_the_answer_is_exact(story: Told) -> None:
    moves = [r for d in story.outcome.decisions for r in d["rescales"] if r["operator"] == "score"]
    assert moves, story.outcome.ticks[-1]
    assert moves[0]["want"] > 1
    assert story.outcome.answer is not None
    assert story.outcome.answer.exact, story.outcome.answer
    assert story.outcome.rows_in >= 0.8 * SECONDS * PER_S


@pytest.mark.slow
@pytest.mark.long
def test_what_a_restart_costs_is_measured_and_logged_with_its_decision(story: Told) -> None:
    paused = [line for line in story.fleet if "pause_s" in line]
    assert paused
    assert all(line["pause_s"] > 0 and line["decision"] is not None for line in paused)
    restarts = [line for line in story.fleet if "restarted between two batches" in line["what"]]
    assert len(restarts) >= len(paused)


def in_one_row(function: object) -> App:
    def built() -> Pipeline:
        pipeline = Pipeline("one")
        pipeline.sink("out", pipeline.operator("work", function, pipeline.source("rows", "id long")))  # type: ignore[arg-type]
        return pipeline

    return App("one", built)


def _refused(app: App, spark: SparkSession, folder: Path, kafka: Broker, **more: object) -> str:
    with pytest.raises(BadInput) as refused:
        run_realtime(
            app,
            spark,
            folder,
            constant(1.0),
            1.0,
            Control("drs-gigk", budget=2),
            kafka=Kafka(kafka.address),
            **more,  # type: ignore[arg-type]
        )
    return str(refused.value)


def test_a_python_operator_is_refused_with_the_reason(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    def in_python(rows: DataFrame) -> DataFrame:
        return rows.mapInArrow(lambda batches: batches, rows.schema)

    said = _refused(in_one_row(in_python), spark, tmp_path, kafka)
    assert "operator 'work' runs Python (MapInArrow)" in said
    assert "only at the end of a batch" in said
    double = F.udf(lambda n: n, "long")
    assert "runs Python" in _refused(in_one_row(lambda rows: rows.select(double("id"))), spark, tmp_path, kafka)


def test_an_operator_that_keeps_state_is_refused(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    said = _refused(in_one_row(lambda rows: rows.groupBy("id").count()), spark, tmp_path, kafka)
    assert "brings rows together (Aggregate)" in said


def test_too_few_slots_are_refused_with_the_number_needed(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    said = _refused(App("payments", build), spark, tmp_path, kafka, processors={"score": 4})
    assert said.startswith("real-time mode needs 5 task slots at once (screen 1, score 4), there are 2")
    assert not (tmp_path / "pipeline.json").exists()


def test_a_row_keeps_its_times_through_projections_that_drop_them(spark: SparkSession) -> None:
    given = spark.range(4).withColumn(COLUMN, F.concat(F.lit("born-"), "id"))
    named = given.select((F.col("id") * 10).alias("ten")).where("ten > 0").alias("some")
    made = named.select(F.explode(F.array("ten", F.col("ten") + 1)).alias("each")).selectExpr("each + 0 AS each")
    jvm: Any = spark._jvm
    carried = DataFrame(jvm.sluicegate.RealTime.carrying(made._jdf, COLUMN), spark)
    assert carried.columns == ["each", COLUMN]
    assert {(row["each"], row[COLUMN]) for row in carried.collect()} == {
        (10 * n + more, f"born-{n}") for n in (1, 2, 3) for more in (0, 1)
    }
    assert made.columns == ["each"]
