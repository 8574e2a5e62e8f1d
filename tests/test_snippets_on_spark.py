"""What the pages show of Spark runs on Spark, in one attached session."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.attach.attached import attached_session, batches, until
from tests.snippets import blocks, execute

from sluicegate.spark.pipeline.runtime import start

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("attached") / "record"


@pytest.fixture(scope="module")
def spark(record: Path) -> Iterator[SparkSession]:
    session = attached_session(record)
    yield session
    session.stop()


def test_the_application_of_the_quickstart_is_seen_when_attached(
    spark: SparkSession, record: Path, tmp_path: Path
) -> None:
    (code,) = blocks("docs/quickstart.md", "python")
    app, ending = code.split("query.awaitTermination")
    assert ending == "(180)\nspark.stop()\n"
    query = execute(app.replace('"checkpoint"', repr(str(tmp_path / "checkpoint"))))["query"]
    try:
        assert until(lambda: any(batch["rows"] for batch in batches(record, "pages")), 180)
    finally:
        query.stop()


def test_attaching_and_detaching_from_python_works_as_shown(spark: SparkSession, record: Path) -> None:
    (code,) = blocks("docs/attach.md", "python")
    assert execute(code, spark=spark)["folder"] == str(record)


def test_the_ends_of_the_page_on_contributing_let_every_row_through_once(spark: SparkSession, tmp_path: Path) -> None:
    (code,) = (code for code in blocks("docs/contributing.md", "python") if "orders" in code)
    here = code.replace('"orders")\n\n', f'"{tmp_path}/orders")\n\n').replace(
        "totals/batch", f"{tmp_path}/totals/batch"
    )
    assert here.count(str(tmp_path)) == 2
    (tmp_path / "orders").mkdir()
    wanted = [{"item": f"item-{number}", "pieces": number % 4} for number in range(100)]
    lines = "\n".join(json.dumps(row) for row in wanted)
    (tmp_path / "orders" / "one.json").write_text(lines, encoding="utf-8")
    with start(execute(here)["pipeline"], spark, tmp_path / "pipeline") as running:
        assert until(lambda: bool(list(tmp_path.glob("totals/*/*.json"))), 180)
        running.drain()
    written = [json.loads(line) for file in tmp_path.glob("totals/*/*.json") for line in file.read_text().splitlines()]
    expected = [row for row in wanted if int(str(row["pieces"])) > 1]
    assert sorted(written, key=str) == sorted(expected, key=str)
