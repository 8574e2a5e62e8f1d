"""State, plan and logs of a pipeline spoiled in five ways: the answer is exact, or one line says why; never wrong."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.spark.small_pipelines import numbers

from sluicegate.errors import SluicegateError
from sluicegate.lab.chaos.spoiling import WAYS
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.runtime import Running, start

pytestmark = pytest.mark.slow
ROWS = 70
RIGHT = Counter(number % 7 for number in range(3 * ROWS))


def by_seven(frame: DataFrame) -> DataFrame:
    return frame.selectExpr("id % 7 as key").groupBy("key").count()


def resumed(spark: SparkSession, folder: Path) -> Running:
    made = Pipeline("spoiled_state")
    made.sink("counts", made.operator("count", by_seven, made.source("rows", "id long"), stateful=True, key_groups=1))
    return start(made, spark, folder, retry_for_s=0, when_stopped="raise")


@pytest.fixture(scope="module")
def story(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("spoiled") / "run"
    with resumed(spark, folder) as running:
        for number in range(2):
            running.feed("rows").append(numbers(ROWS, number * ROWS))
            running.drain()
    return folder


@pytest.fixture
def folder(story: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(story, tmp_path / "run"))


def answer(spark: SparkSession, folder: Path) -> dict[int, int]:
    """With the last third of the rows."""
    with resumed(spark, folder) as running:
        if running.feed("rows").rows < 3 * ROWS:  # not fed by a start before, which stopped later
            running.feed("rows").append(numbers(ROWS, 2 * ROWS))
        running.drain()
        return latest(running)


def latest(running: Running) -> dict[int, int]:
    """Counts only grow."""
    found: dict[int, int] = {}
    for row in running.read("count").collect():
        found[row["key"]] = max(found.get(row["key"], 0), row["count"])
    return found


def newest_state(folder: Path) -> Path:
    files = [p for p in (folder / "operators/count/checkpoint/state").rglob("*") if p.suffix in (".changelog", ".zip")]
    return max(files, key=lambda path: path.stat().st_mtime_ns)


@pytest.mark.parametrize("way", WAYS)
def test_spoiled_state_is_exact_or_one_line_and_goes_on_exactly_once_restored(
    spark: SparkSession, folder: Path, way: str
) -> None:
    path = newest_state(folder)
    before = path.read_bytes()
    after = WAYS[way](before, random.Random(3))
    path.unlink() if after is None else path.write_bytes(after)
    told, found = tried(spark, folder)
    if told:
        assert "\n" not in told
        assert "code" not in told or "not at fault" in told, told
        path.write_bytes(before)
        found = answer(spark, folder)
    assert found == RIGHT


def tried(spark: SparkSession, folder: Path) -> tuple[str, dict[int, int]]:
    """What is said where it does not go on, else the answer."""
    try:
        return "", answer(spark, folder)
    except SluicegateError as problem:
        return str(problem), {}


def test_spoiled_plans_and_logs_change_nothing(spark: SparkSession, folder: Path) -> None:
    for place, name in enumerate(("plan.json", "failures.json", "operators/count/batches.jsonl", "nodes.json")):
        path = folder / name
        before = path.read_bytes() if path.exists() else b"{}"
        after = WAYS[list(WAYS)[place + 1]](before, random.Random(place))
        path.write_bytes(after or b"")
    assert answer(spark, folder) == RIGHT
