"""What a mapping reaches, from the batches of the last operators, without Spark."""

from __future__ import annotations

import pytest

from model_driven_live import out_per_s
from sluicegate.domain.births import Births
from sluicegate.runlog.batch_log import BatchRecord


def batch(number: int, ended_s: float, rows: int) -> BatchRecord:
    return BatchRecord(number, ended_s - 2.0, ended_s, 2.0, rows, rows, 1, None, Births())


STEADY = [batch(n, 2.0 * n, 120) for n in range(14)]
"""60 rows a second up to 26 s; rows come until 25 s."""
TAIL = [batch(14 + n, 28.0 + 2.0 * n, rows) for n, rows in enumerate((60, 20, 5))]
"""What is left when no more rows come, in batches that take as long."""


def test_a_pipeline_that_keeps_up_reaches_its_load_however_long_the_last_rows_take() -> None:
    assert out_per_s([*STEADY, *TAIL], since_s=10.0, fed_s=25.0) == pytest.approx(60.0)


def test_one_that_does_not_keep_up_reaches_what_it_carries() -> None:
    slow = [batch(n, 2.0 * n, 80) for n in range(20)]
    assert out_per_s(slow, since_s=10.0, fed_s=25.0) == pytest.approx(40.0)


def test_the_rates_of_several_last_operators_are_added() -> None:
    assert out_per_s([*STEADY, *STEADY], since_s=10.0, fed_s=25.0) == pytest.approx(120.0)


def test_long_batches_are_counted_beyond_the_feed_rather_than_one_alone() -> None:
    long = [batch(n, 10.0 * n, 600) for n in range(5)]
    assert out_per_s(long, since_s=10.0, fed_s=15.0) == pytest.approx(60.0)
    assert out_per_s(long[:2], since_s=10.0, fed_s=15.0) == 0.0
