"""The paper's traffic, finance and grid, of five tasks as operators: exact on Spark, and judged by other routes."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.lab.apps.moving import feed, judged

from sluicegate.config.topology_file import read_topology
from sluicegate.lab.apps import dataflows, task_dataflows
from sluicegate.lab.running.app import App
from sluicegate.spark.pipeline.fusion import groups_of
from sluicegate.spark.pipeline.graph import RunningGraph
from sluicegate.spark.pipeline.runtime import start

ROWS = 6


@pytest.mark.slow
@pytest.mark.parametrize("app", task_dataflows.APPS[3:], ids=lambda app: app.name)
def test_every_message_leaves_once_for_each_path_with_its_tasks_answers(
    app: App, spark: SparkSession, tmp_path: Path
) -> None:
    with app.brought_up() as ready, start(pipeline := ready.build(), spark, tmp_path, fuse=False) as running:
        feed(ready, running, ROWS)
        running.drain()
        answer = judged(ready, pipeline, running)
    assert answer.exact, answer.note
    assert answer.rows_out == ROWS * (3 if app.name.startswith("finance") else 4)


@pytest.mark.parametrize("dataflow", task_dataflows.DATAFLOWS[:3], ids=lambda dataflow: dataflow.name)
def test_the_applications_have_the_papers_numbers_of_operators(dataflow: task_dataflows.TaskDataflow) -> None:
    operators = {"traffic_tasks": 11, "finance_tasks": 7, "grid_tasks": 15}
    assert len(task_dataflows.build(dataflow).steps) == operators[dataflow.name]


def test_a_lost_doubled_or_wrong_row_is_noticed(spark: SparkSession) -> None:
    dataflow = task_dataflows.DATAFLOWS[1]
    paths = task_dataflows.paths(dataflow.graph)
    right = [row for row in dataflows.expected(5, paths, dataflow.tasks).elements() if isinstance(row, tuple)]
    schema = dataflow.schema.replace(", message string", "")

    def told(rows: list[tuple[object, ...]]) -> tuple[bool, int, int]:
        sinks = {"all": spark.createDataFrame(rows, schema)}
        found = dataflows.check({"messages": 5}, sinks, paths, dataflow.tasks)
        return found.exact, found.lost, found.duplicated

    assert told(right) == (True, 0, 0)
    assert told(right[1:]) == (False, 1, 0)
    assert told([*right, right[0]]) == (False, 0, 1)
    assert told([(right[0][0], 1, *right[0][2:]), *right[1:]]) == (False, 1, 1)


@pytest.mark.parametrize("dataflow", task_dataflows.DATAFLOWS[:3], ids=lambda dataflow: dataflow.name)
def test_the_example_is_the_graph_that_runs(dataflow: task_dataflows.TaskDataflow) -> None:
    example = read_topology(Path(__file__).parents[3] / "examples" / f"{dataflow.name}.toml")
    running = RunningGraph.of(task_dataflows.build(dataflow), groups_of(task_dataflows.build(dataflow), fuse=False))
    inner = {(edge.origin, edge.target) for edge in running.topology().inner_edges}
    assert {(edge.origin, edge.target) for edge in example.inner_edges} == inner
