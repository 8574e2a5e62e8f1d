"""Nexmark's queries give the rows of an independent answer: plain, attached with tasks moved, and as pipelines."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.attach.attached import MOVES, PARTITIONS, attached_session, batches, move_every_batch

from nexmark.answers import Answers, Row
from nexmark.events import events, write
from nexmark.pipelines import PIPELINES, pipeline_of
from nexmark.queries import QUERIES
from nexmark.run import difference, rows_of, rows_of_pipeline, run_pipeline, run_query
from sluicegate import spark_session

ROOT = Path(__file__).parents[2]
EVENTS, PER_BATCH, AT_ONCE = 6000, 2000, 4
WITHOUT_STATE = ("q0", "q1", "q2")


class Runs:
    """All queries run to their end in one session, several at once."""

    def __init__(self, base: Path, spark: SparkSession) -> None:
        self.base, self.record = base, base / "record"
        self.rows: dict[str, list[Row]] = {}
        self.problems: dict[str, str] = {}
        write(base / "events", EVENTS, PER_BATCH)
        try:
            with ThreadPoolExecutor(AT_ONCE) as pool:
                list(pool.map(lambda name: self._run(spark, name), QUERIES))
        finally:
            spark.stop()

    def _run(self, spark: SparkSession, name: str) -> None:
        out = self.base / "out" / name
        try:
            run_query(spark, name, self.base / "events", out, timeout_s=240)
            self.rows[name] = rows_of(spark, out)
        except Exception as problem:
            self.problems[name] = str(problem)[:2000]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    settings = {"spark.plugins": "", "spark.driver.memory": "1g", "spark.sql.shuffle.partitions": str(PARTITIONS)}
    return Runs(tmp_path_factory.mktemp("plain"), spark_session("local[4]", settings))


@pytest.fixture(scope="module")
def attached(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    base = tmp_path_factory.mktemp("attached")
    spark = attached_session(base / "record")
    move_every_batch(base / "record", QUERIES)
    return Runs(base, spark)


@pytest.fixture(scope="module")
def answers() -> Answers:
    return Answers(EVENTS)


def check(runs: Runs, answers: Answers, name: str) -> None:
    assert runs.problems.get(name) is None
    assert answers.of(name)
    assert difference(runs.rows[name], answers.of(name)) is None


@pytest.mark.slow
@pytest.mark.parametrize("name", QUERIES)
def test_rows_are_those_of_the_answer_with_tasks_moved(attached: Runs, answers: Answers, name: str) -> None:
    check(attached, answers, name)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("name", QUERIES)
def test_rows_are_those_of_the_answer_on_plain_spark(plain: Runs, answers: Answers, name: str) -> None:
    check(plain, answers, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in QUERIES if name not in WITHOUT_STATE])
def test_tasks_moved_at_every_batch_of_an_attached_query(attached: Runs, name: str) -> None:
    tasks = {batch["batch"]: batch["tasks"] for batch in batches(attached.record, name)}
    assert len(tasks) >= EVENTS // PER_BATCH
    assert tasks == {batch: MOVES[batch % len(MOVES)] for batch in tasks}


@pytest.fixture(scope="module")
def pipelines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SparkSession, Path]]:
    base, spark = tmp_path_factory.mktemp("pipelines"), spark_session("local[4]", {"spark.driver.memory": "1g"})
    write(base / "events", EVENTS, PER_BATCH)
    yield spark, base
    spark.stop()


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == "q4" else [pytest.mark.long]) for name in PIPELINES]
)
def test_rows_are_those_of_the_answer_as_a_pipeline_whose_k_moves(
    pipelines: tuple[SparkSession, Path], answers: Answers, name: str
) -> None:
    spark, base = pipelines
    run_pipeline(spark, name, base / "events", base / name, k=(1, 4, 2), timeout_s=240)
    assert difference(rows_of_pipeline(spark, base / name), answers.of(name)) is None


def test_every_query_is_there_as_a_pipeline_and_state_is_kept_apart() -> None:
    assert list(PIPELINES) == list(QUERIES)
    for name in PIPELINES:
        pipeline_of(name).check()
    steps = pipeline_of("q4").steps.values()
    assert [step.name for step in steps if step.stateful] == ["while_open", "highest", "out"]


def test_events_come_in_nexmarks_proportions_with_hot_keys() -> None:
    kinds = Counter(type(one).__name__ for one in events(5000))
    assert kinds == {"Person": 100, "Auction": 300, "Bid": 4600}
    bids = Answers(5000).bids
    assert Counter(bid.bidder for bid in bids).most_common(1)[0][1] > len(bids) / 2
    assert Counter(bid.auction for bid in bids).most_common(1)[0][1] > len(bids) / 10


def test_one_row_that_differs_is_found() -> None:
    assert difference([(1, 2), (3, 4)], [(1, 2), (3, 4)]) is None
    assert difference([(1, 2)], [(1, 2), (3, 4)]) == "1 rows for 2: first difference None for (3, 4)"
    assert difference([(1, 2), (1, 2)], [(1, 2)]) == "2 rows for 1: first difference (1, 2) for None"


@pytest.mark.slow
def test_the_command_runs_a_query_all_three_ways_and_shows_the_ratios(tmp_path: Path) -> None:
    words = [sys.executable, str(ROOT / "benchmarks" / "nexmark" / "run.py"), "--queries", "q2", "--turns", "1"]
    words += ["--events", "2000", "--per-batch", "1000"]
    elsewhere = {**os.environ, "BENCH_RESULTS": str(tmp_path)}
    printed = subprocess.run(words, capture_output=True, text=True, check=True, env=elsewhere).stdout
    runs = [json.loads(line) for line in (tmp_path / "nexmark.jsonl").read_text().splitlines()]
    assert [(run["way"], run["turn"], run["wrong"]) for run in runs] == [
        ("pipeline", 0, None),
        ("attached", 0, None),
        ("plain", 0, None),
        ("plain", 1, None),
        ("attached", 1, None),
        ("pipeline", 1, None),
    ]
    cells = [cell.strip() for cell in printed.splitlines()[-1].split("|")[1:-1]]
    assert cells[0] == "q2"
    assert float(cells[-1]) > 0
