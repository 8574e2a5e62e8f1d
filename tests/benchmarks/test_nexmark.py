"""Nexmark's queries give the rows of an independent answer: plain, and attached with tasks moved at every batch."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.attach.attached import MOVES, PARTITIONS, attached_session, batches, move_every_batch

from nexmark.answers import Answers, Row
from nexmark.events import events, write
from nexmark.queries import QUERIES
from nexmark.run import difference, rows_of, run_query
from sluicegate import spark_session

ROOT = Path(__file__).parents[2]
EVENTS, PER_BATCH, AT_ONCE = 6000, 2000, 4
WITHOUT_STATE = ("q0", "q1", "q2")


class Runs:
    """All queries run to their end, first plain, then attached, several at once."""

    def __init__(self, base: Path) -> None:
        self.base, self.record = base, base / "record"
        self.rows: dict[tuple[str, str], list[Row]] = {}
        self.problems: dict[tuple[str, str], str] = {}
        write(base / "events", EVENTS, PER_BATCH)
        settings = {"spark.plugins": "", "spark.driver.memory": "1g", "spark.sql.shuffle.partitions": str(PARTITIONS)}
        self._run_all("plain", spark_session("local[4]", settings))
        attached = attached_session(self.record)
        move_every_batch(self.record, QUERIES)
        self._run_all("attached", attached)

    def _run_all(self, way: str, spark: SparkSession) -> None:
        try:
            with ThreadPoolExecutor(AT_ONCE) as pool:
                list(pool.map(lambda name: self._run(way, spark, name), QUERIES))
        finally:
            spark.stop()

    def _run(self, way: str, spark: SparkSession, name: str) -> None:
        out = self.base / way / name
        try:
            run_query(spark, name, self.base / "events", out, timeout_s=240)
            self.rows[way, name] = rows_of(spark, out)
        except Exception as problem:
            self.problems[way, name] = str(problem)[:2000]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return Runs(tmp_path_factory.mktemp("nexmark"))


@pytest.fixture(scope="module")
def answers() -> Answers:
    return Answers(EVENTS)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["plain", "attached"])
@pytest.mark.parametrize("name", QUERIES)
def test_rows_are_those_of_the_answer(runs: Runs, answers: Answers, name: str, way: str) -> None:
    assert runs.problems.get((way, name)) is None
    assert answers.of(name)
    assert difference(runs.rows[way, name], answers.of(name)) is None


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in QUERIES if name not in WITHOUT_STATE])
def test_tasks_moved_at_every_batch_of_an_attached_query(runs: Runs, name: str) -> None:
    tasks = {batch["batch"]: batch["tasks"] for batch in batches(runs.record, name)}
    assert len(tasks) >= EVENTS // PER_BATCH
    assert tasks == {batch: MOVES[batch % len(MOVES)] for batch in tasks}


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
def test_the_command_runs_a_query_plain_and_attached_and_shows_the_ratio(tmp_path: Path) -> None:
    words = [sys.executable, str(ROOT / "benchmarks" / "nexmark" / "run.py"), "--queries", "q2", "--turns", "1"]
    words += ["--events", "2000", "--per-batch", "1000", "--json", str(tmp_path / "runs.jsonl")]
    printed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    runs = [json.loads(line) for line in (tmp_path / "runs.jsonl").read_text().splitlines()]
    assert [(run["way"], run["turn"], run["wrong"]) for run in runs] == [
        ("attached", 0, None),
        ("plain", 0, None),
        ("plain", 1, None),
        ("attached", 1, None),
    ]
    cells = [cell.strip() for cell in printed.splitlines()[-1].split("|")[1:-1]]
    assert cells[0] == "q2"
    assert float(cells[-1]) > 0
