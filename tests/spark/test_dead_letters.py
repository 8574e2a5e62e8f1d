"""Rows that an operator cannot take: skipped to its dead letters where that is asked for, else named where it stops."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.spark.small_pipelines import ids_of, refused

from sluicegate import by_row, in_pandas
from sluicegate.cli.status import dead_letters
from sluicegate.errors import BadInput
from sluicegate.runlog.run_record import read_record
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.failures import OperatorFailed
from sluicegate.spark.pipeline.runtime import Running, start
from sluicegate.spark.pipeline.verify import verify

pytestmark = pytest.mark.slow


def texts(first: int, end: int) -> pa.Table:
    """Every seventh is no number, every eleventh is nothing."""
    made = [None if n % 11 == 0 else f"{n}x" if n % 7 == 0 else str(n) for n in range(first, end)]
    return pa.table({"text": pa.array(made, pa.string())})


def good(first: int, end: int) -> list[int]:
    return [n for n in range(first, end) if n % 7 and n % 11]


def bad(first: int, end: int) -> list[str | None]:
    return [None if n % 11 == 0 else f"{n}x" for n in range(first, end) if n % 7 == 0 or n % 11 == 0]


def functions() -> dict[str, Any]:
    """Made anew: what Spark's workers cannot import they get by value."""

    def parse(row: dict[str, Any]) -> dict[str, Any]:
        return {"id": int(row["text"])}

    def parse_all(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for frame in frames:
            yield pd.DataFrame({"id": [int(text) for text in frame["text"]]})

    return {"rows": by_row(parse, "id long"), "pandas": in_pandas(parse_all, "id long")}


def parsing(function: Any, dead_letters: bool = True) -> Pipeline:
    pipeline = Pipeline("parsing")
    lines = pipeline.source("lines", "text string")
    parsed = pipeline.operator("parse", function, lines, dead_letters=dead_letters, fuse=False, retry_for_s=1.0)
    pipeline.sink("out", pipeline.operator("after", lambda frame: frame.where("id >= 0"), parsed))
    return pipeline


def dead_of(running: Running) -> list[dict[str, Any]]:
    return [row.asDict() for row in running.read("parse.dead_letters").collect()]


def rows_of(dead: list[dict[str, Any]]) -> list[str]:
    return sorted(str(json.loads(one["dead_row"])["text"]) for one in dead)


@pytest.mark.parametrize("kind", ["rows", "pandas"])
def test_good_rows_go_on_once_and_bad_ones_are_dead_letters_once_also_across_a_restart(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    function = functions()[kind]
    with start(parsing(function), spark, tmp_path, processors={"parse": 2}) as running:
        running.feed("lines").append(texts(1, 200))
        running.drain()
        running.feed("lines").append(texts(200, 300))
        running.drain()
        running.feed("lines").append(texts(300, 350))
    with start(parsing(function), spark, tmp_path) as running:
        running.drain()
        running.feed("lines").append(texts(350, 400))
        running.drain()
        assert ids_of(running.read("after")) == good(1, 400)
        dead = dead_of(running)
    assert rows_of(dead) == sorted(map(str, bad(1, 400)))
    assert {one["dead_operator"] for one in dead} == {"parse"}
    (seven,) = [one for one in dead if json.loads(one["dead_row"])["text"] == "7x"]
    assert seven["dead_reason"] == "ValueError: invalid literal for int() with base 10: '7x'"
    assert seven["dead_place"] == "edge 'lines', manifest 0, row 6 of task 0"
    assert seven["dead_batch"] == min(one["dead_batch"] for one in dead)
    assert dead_letters(read_record(tmp_path)) == {"parse.dead_letters": len(dead)}
    assert verify(tmp_path).sound


@pytest.mark.parametrize("kind", ["rows", "pandas"])
def test_without_dead_letters_the_row_is_named_and_with_them_the_same_folder_goes_on(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    function = functions()[kind]
    with start(parsing(function, dead_letters=False), spark, tmp_path) as running:
        running.feed("lines").append(texts(1, 7))
        running.drain()
        running.feed("lines").append(texts(7, 30))
        with pytest.raises(OperatorFailed) as failed:
            running.drain()
    assert str(failed.value).startswith(
        "operator 'parse' failed at batch 1: ValueError: invalid literal for int() with base 10: '7x' "
        "(row 0 of task 0) (its rows: edge 'lines', manifest 1); nothing is lost"
    )
    with start(parsing(function), spark, tmp_path) as running:
        running.drain()
        assert ids_of(running.read("after")) == good(1, 30)
        assert rows_of(dead_of(running)) == sorted(map(str, bad(7, 30)))
    assert verify(tmp_path).sound
    told = refused(spark, parsing(function, dead_letters=False), tmp_path)
    assert "the operators parse are joined otherwise" in told


def test_a_service_that_is_down_makes_no_dead_letters_and_neither_does_wrong_code(
    spark: SparkSession, tmp_path: Path
) -> None:
    def down(row: dict[str, Any]) -> dict[str, Any]:
        raise ConnectionRefusedError("nobody there")

    def wrong(row: dict[str, Any]) -> Any:
        return 3

    for number, (function, said) in enumerate([(down, "ConnectionRefusedError"), (wrong, "WrongResult")]):
        with start(parsing(by_row(function, "id long")), spark, tmp_path / str(number)) as running:
            running.feed("lines").append(texts(1, 7))
            with pytest.raises(OperatorFailed, match=said):
                running.drain()
            assert dead_of(running) == []


def test_dead_letters_can_be_read_by_an_operator_and_rows_that_fit_no_column_are_such(
    spark: SparkSession, tmp_path: Path
) -> None:
    def as_is(row: dict[str, Any]) -> list[dict[str, Any]]:
        return [{"id": row["text"] if row["text"] == "7x" else int(row["text"] or 0)}] * 2

    pipeline = Pipeline("told")
    lines = pipeline.source("lines", "text string")
    parsed = pipeline.operator("parse", by_row(as_is, "id long"), lines, dead_letters=True)
    pipeline.sink("out", parsed)
    alarms = pipeline.operator("alarm", lambda frame: frame.select("dead_reason"), pipeline.dead_letters("parse"))
    pipeline.sink("alarms", alarms)
    with start(pipeline, spark, tmp_path) as running:
        running.feed("lines").append(texts(1, 12))
        running.drain()
        assert ids_of(running.read("parse")) == sorted([0, 1, 2, 3, 4, 5, 6, 8, 9, 10] * 2)
        assert rows_of(dead_of(running)) == ["7x"]
        (alarm,) = running.read("alarm").collect()
        assert "Arrow" in alarm["dead_reason"]


def _same(frame: DataFrame) -> DataFrame:
    return frame


def test_dead_letters_are_refused_where_no_row_can_be_told_from_another() -> None:
    pipeline = Pipeline("refused")
    lines = pipeline.source("lines", "text string")
    with pytest.raises(BadInput, match="dead_letters needs a function of rows, made by"):
        pipeline.operator("sql", _same, lines, dead_letters=True)
    rows = functions()["rows"]
    with pytest.raises(BadInput, match="is for operators without state that read one stream"):
        pipeline.operator("state", rows, lines, stateful=True, dead_letters=True)
    with pytest.raises(BadInput, match="'plain' has no dead letters: declare it with dead_letters=True"):
        pipeline.dead_letters("plain")
    with pytest.raises(BadInput, match="rename it"):
        pipeline.splitter("split", _same, lines, outputs=["a", "dead_letters"])
    with pytest.raises(BadInput, match="give the columns that the function returns"):
        by_row(lambda row: row, "")


def test_a_column_that_dead_letters_need_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    taken = by_row(lambda row: {"dead_row": "x"}, "dead_row string")
    assert "need column 'dead_row': rename yours" in refused(spark, parsing(taken), tmp_path)


def test_a_write_gets_the_columns_of_its_stream_and_is_called_again_for_a_batch_that_has_no_rows_any_more(
    spark: SparkSession, tmp_path: Path
) -> None:
    """It stored rows of code that was wrong, and failed; the mended code has none: those rows have to go."""
    stored: dict[int, list[dict[str, Any]]] = {}

    def write(batch: DataFrame, number: int) -> None:
        assert batch.columns == ["id"]
        stored[number] = [row.asDict() for row in batch.collect()]
        if stored[number]:
            raise ConnectionError("the database hung up after it had stored the batch")

    def started(function: Any) -> Running:
        pipeline = Pipeline("mended")
        lines = pipeline.source("lines", "text string")
        pipeline.sink("out", pipeline.operator("parse", function, lines, dead_letters=True), write=write, keep=False)
        return start(pipeline, spark, tmp_path, retry_for_s=0.0)

    with started(functions()["rows"]) as running:
        running.feed("lines").append(texts(1, 9))
        with pytest.raises(OperatorFailed, match="hung up"):
            running.drain()
    assert [row["id"] for row in stored[0]] == good(1, 9)
    with started(by_row(lambda row: None, "id long")) as running:
        running.drain()
    assert stored == {0: []}
