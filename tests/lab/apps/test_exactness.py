"""Applications are exact while k moves under them, over a stop in the middle, and with code that changed meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.lab.apps.moving import assert_exact_while_k_moves, feed, judged, move

from sluicegate.lab.apps import chain, fpd, payments, top_n, wordcount
from sluicegate.lab.running.app import App
from sluicegate.lab.running.load import triples
from sluicegate.lab.running.run_app import run_app
from sluicegate.spark.controller import Control
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.runtime import start

FPD_1000 = fpd.app_of(1_000, "fpd_1000")
"""The way that the window of 50,000 is made, with one that a test can fill."""
CASES: Mapping[str, tuple[App, Callable[[], Pipeline], int]] = {
    "wordcount": (wordcount.APP, wordcount.build, 600),
    "top_n": (top_n.APP, partial(top_n.build, key_groups=3), 600),
    "fpd": (fpd.APP, partial(fpd.build, key_groups=3), 200),
    "fpd_1000": (FPD_1000, partial(fpd.build, key_groups=3, threshold=40, name="fpd_1000"), 500),
    "payments": (payments.app_of(rounds=2), partial(payments.build, 2), 300),
    "wordcount_prose": (wordcount.PROSE, partial(wordcount.build, "wordcount_prose"), 300),
    "fpd_waiting": (fpd.WAITING, partial(fpd.build, key_groups=3, fetch_ms=0.2, look_up_ms=0.1), 200),
    "chain": (chain.APP, partial(chain.build, waits_ms={"parse": 0.2, "enrich": 0.4, "store": 0.1}), 500),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_answer_is_exact_while_k_moves_up_and_down(name: str, spark: SparkSession, tmp_path: Path) -> None:
    app, build, count = CASES[name]
    assert_exact_while_k_moves(app, build(), count, spark, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["wordcount", "fpd"])
def test_a_pipeline_that_is_stopped_in_the_middle_goes_on_and_is_exact(
    name: str, spark: SparkSession, tmp_path: Path
) -> None:
    app, build, count = CASES[name]
    for ks in ((2, 3), (1, 2)):
        pipeline = build()
        with start(pipeline, spark, tmp_path) as running:
            assert running.plan().of(running.graph.nodes[0].name).processors in (1, 3)
            for k in ks:
                move(running, k)
                feed(app, running, count)
            if ks == (2, 3):
                running.stop()
            else:
                running.drain()
                answer = judged(app, pipeline, running)
    assert answer.exact, answer.note


@pytest.mark.slow
def test_an_application_with_a_loop_runs_under_the_control_loop_and_is_exact(
    spark: SparkSession, tmp_path: Path
) -> None:
    control = Control(slo=(fpd.APP.slo,), budget=8, interval_s=1.0)
    told = run_app(fpd.APP, spark, tmp_path, triples(60.0), 8.0, control)
    assert told.answer is not None
    assert told.answer.exact, told.answer.note
    assert told.ticks
    assert not told.restarts


def tagging(version: int) -> Pipeline:
    """One stateless operator whose code is told by what it writes, in front of a count."""

    def tag(rows: DataFrame) -> DataFrame:
        return rows.select("id", F.lit(version).alias("version"))

    def count(rows: DataFrame) -> DataFrame:
        return rows.groupBy("version").count()

    pipeline = Pipeline("tagging")
    tagged = pipeline.operator("tag", tag, pipeline.source("ids", "id long"))
    pipeline.sink("tagged", tagged)
    pipeline.sink("counts", pipeline.operator("count", count, tagged, stateful=True, key_groups=2))
    return pipeline


@pytest.mark.slow
def test_code_that_changed_between_two_runs_applies_to_the_rows_that_come_after(
    spark: SparkSession, tmp_path: Path
) -> None:
    for version in (1, 2):
        with start(tagging(version), spark, tmp_path) as running:
            ids = running.feed("ids")
            ids.append(pa.table({"id": list(range(ids.rows, ids.rows + 500))}))
            running.drain()
            tagged = Counter((row["id"], row["version"]) for row in running.read("tag").collect())
            counts = {row["version"]: row["count"] for row in running.read("count").collect()}
    assert tagged == Counter(zip(range(1000), [1] * 500 + [2] * 500, strict=True))
    assert counts == {1: 500, 2: 500}
