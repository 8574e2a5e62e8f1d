"""What a user gives is checked where it is given, in one line that says what to give instead."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import StructType

from sluicegate import Pipeline, elastic, spark_session
from sluicegate.errors import BadInput
from sluicegate.runlog.layout import Layout
from sluicegate.runlog.lock import check_free, locked
from sluicegate.spark.ground import ground_of
from sluicegate.spark.pipeline.graph import Node, RunningGraph
from sluicegate.spark.pipeline.start_checks import check_pace, check_processors

ANY: Any = object()
GRAPH = RunningGraph("one", ("rows",), (Node("work", ("rows",), ("work",), False, 8, True, None),), ("work",))


def one(frame: Any) -> Any:
    return frame


def with_lines() -> tuple[Any, Any]:
    pipeline = Pipeline("p")
    return pipeline, pipeline.source("lines", "id long")


def splitter() -> tuple[Any, Any]:
    pipeline, lines = with_lines()
    return pipeline, pipeline.splitter("split", one, lines, outputs=["a", "b"])


WRONG: list[tuple[Callable[[], object], str]] = [
    (lambda: Pipeline(ANY), "pipeline name"),
    (lambda: with_lines()[0].source("more", StructType()), "schema is StructType"),
    (lambda: with_lines()[0].source("more", "id long", stream=one), "either a schema, or a stream"),
    (lambda: with_lines()[0].source("more", stream="kafka"), "no function"),
    (lambda: with_lines()[0].operator("a", one, "lines"), "takes a stream, got 'lines'"),
    (lambda: splitter()[0].operator("a", one, splitter()[1]), r"name one, such as split\['a'\]"),
    (lambda: with_lines()[0].operator("a", one, with_lines()[1], key_groups="8"), "key_groups is '8'"),
    (lambda: with_lines()[0].operator("a", one, with_lines()[1], stateful="yes"), "stateful is 'yes'"),
    (lambda: with_lines()[0].operator("a", one, with_lines()[1], fuse=None), "fuse is None"),
    (lambda: with_lines()[0].operator("a", one, with_lines()[1], mode="updates"), "mode is 'updates'"),
    (lambda: with_lines()[0].splitter("a", one, with_lines()[1], outputs="ab"), "name its outputs"),
    (lambda: with_lines()[1] | "more", "takes a stream, got 'more'"),
    (lambda: with_lines()[0].loop("back", ""), "has no schema"),
    (lambda: with_lines()[0].sink("s", "lines"), "takes a stream, got 'lines'"),
    (lambda: with_lines()[0].close("back", "lines"), "takes a stream, got 'back'"),
    (lambda: spark_session("local[0]"), "master is 'local"),
    (lambda: spark_session("lokal"), "master is 'lokal'"),
    (lambda: spark_session("spark://host"), "master is 'spark://host'"),
    (lambda: spark_session("local[2]", {"executor.memory": "1g"}), "names such as spark.executor.memory"),
    (lambda: spark_session("local[2]", {"spark.executor.memory": ANY}), "give a text or a number"),
    (lambda: ground_of("locale[2]"), "master is 'locale"),
    (lambda: ground_of("spark://a:7077", "4:1"), "1 <= least <= most"),
    (lambda: ground_of("spark://a:7077", "0:2"), "1 <= least <= most"),
    (lambda: ground_of("spark://a:7077", "many"), "give LEAST:MOST"),
    (lambda: elastic(ANY, ANY, "folder"), "runs a Pipeline, got object"),
    (lambda: elastic(Pipeline("p"), ANY, "folder"), "needs a Spark session, got object"),
]


@pytest.mark.parametrize(("give", "said"), WRONG, ids=[said for _, said in WRONG])
def test_what_cannot_be_meant_is_refused_at_the_call(give: Callable[[], object], said: str) -> None:
    with pytest.raises(BadInput, match=said) as refused:
        give()
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("name", "pace_s"), [("none", 1.0), ("work", -1.0), ("work", float("nan")), ("work", "1s")])
def test_a_pace_that_cannot_be_kept_is_refused(name: str, pace_s: Any) -> None:
    with pytest.raises(BadInput, match=f"pace of '{name}'"):
        check_pace(GRAPH, name, pace_s)
    check_pace(GRAPH, "work", 0)


@pytest.mark.parametrize("k", [0, -1, 2.5, "2"])
def test_processors_are_whole_and_at_least_one(k: Any) -> None:
    with pytest.raises(BadInput, match="give at least 1"):
        check_processors(GRAPH, "work", k)


def test_a_folder_in_which_a_pipeline_runs_is_refused_by_one_look(tmp_path: Path) -> None:
    check_free(tmp_path / "new")
    assert not (tmp_path / "new").exists()
    with locked(Layout(tmp_path / "new")):
        with pytest.raises(BadInput, match=r"a pipeline runs in .*new already \(process \d+\)"):
            check_free(tmp_path / "new")
        with pytest.raises(BadInput, match=r"already \(process \d+\)"):
            locked(Layout(tmp_path / "new"))
    check_free(tmp_path / "new")
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match="is a file"):
        check_free(tmp_path / "file")
