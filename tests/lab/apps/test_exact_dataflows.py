"""The three dataflows of model-driven scheduling are exact while k moves, and their check notices what is not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.lab.apps.moving import assert_exact_while_k_moves

from sluicegate.lab.apps import dataflows
from sluicegate.lab.running.app import Answer, App

ROW = tuple[object, ...]
RESULT = "id long, blob long, table long, pi string, parse long, batch long"


@pytest.mark.slow
@pytest.mark.parametrize("app", dataflows.APPS[:4], ids=lambda app: app.name)
def test_a_dataflow_is_exact_while_k_moves_up_and_down(app: App, spark: SparkSession, tmp_path: Path) -> None:
    with app.brought_up() as ready:
        assert_exact_while_k_moves(ready, ready.build(), 12, spark, tmp_path)


def judged(spark: SparkSession, dataflow: dataflows.Dataflow, spoil: Callable[[list[ROW]], list[ROW]]) -> Answer:
    """What the check says of the right rows of 20 messages, spoiled."""
    right = [row for row in dataflows.expected(20, dataflow.paths) if isinstance(row, tuple)]
    return dataflows.check({"messages": 20}, {"done": spark.createDataFrame(spoil(right), RESULT)}, dataflow.paths)


@pytest.mark.parametrize("dataflow", dataflows.DATAFLOWS[:3], ids=lambda dataflow: dataflow.name)
def test_the_check_notices_one_lost_doubled_or_wrong_row(dataflow: dataflows.Dataflow, spark: SparkSession) -> None:
    assert judged(spark, dataflow, lambda rows: rows[::-1]).exact
    lost = judged(spark, dataflow, lambda rows: rows[1:])
    assert (lost.exact, lost.lost, lost.duplicated) == (False, 1, 0)
    doubled = judged(spark, dataflow, lambda rows: [*rows, rows[3]])
    assert (doubled.exact, doubled.lost, doubled.duplicated) == (False, 0, 1)
    wrong = judged(spark, dataflow, lambda rows: [(*rows[0][:3], "0000000000", *rows[0][4:]), *rows[1:]])
    assert (wrong.exact, wrong.lost, wrong.duplicated) == (False, 1, 1)
    skipped = judged(spark, dataflow, lambda rows: [(*rows[0][:3], None, *rows[0][4:]), *rows[1:]])
    assert not skipped.exact
