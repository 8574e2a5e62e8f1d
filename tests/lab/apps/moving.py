"""An application on Spark, fed by hand, while k moves under it."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from sluicegate.lab.running.app import Answer, App
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.runtime import Running, start

ROUNDS = ((1,), (4, 2, 3))
"""k before each table. The first round is drained alone, so that every operator, even one of two key groups, surely
runs with one k and then with more; in the second k moves up and down under rows that are on their way."""


def move(running: Running, k: int) -> None:
    """Every operator to k, or to as many as it has key groups."""
    nodes = running.graph.nodes
    running.set_processors({node.name: min(k, node.key_groups) if node.stateful else k for node in nodes})


def feed(app: App, running: Running, count: int) -> None:
    for source in running.graph.sources:
        assert app.rows is not None
        one = running.feed(source)
        one.append(app.rows(source, one.rows, count))


def judged(app: App, pipeline: Pipeline, running: Running) -> Answer:
    assert app.check is not None
    fed = {source: running.feed(source).rows for source in running.graph.sources}
    return app.check(fed, {sink.name: running.read(sink.stream) for sink in pipeline.sinks.values()})


def assert_exact_while_k_moves(app: App, pipeline: Pipeline, count: int, spark: SparkSession, folder: Path) -> None:
    """Feed ``count`` rows before each move; every operator must really have run with more than one k."""
    with start(pipeline, spark, folder) as running:
        for ks in ROUNDS:
            for k in ks:
                move(running, k)
                feed(app, running, count)
            running.drain()
        answer = judged(app, pipeline, running)
        used = {node.name: {record.processors for record in running.records(node.name)} for node in running.graph.nodes}
    assert answer.exact, answer.note
    assert all(len(used[node.name]) > 1 for node in running.graph.nodes if not node.stateful or node.key_groups > 1)
