"""Samples of the throughput: over equal times, whatever the turns of an operator's batches."""

from __future__ import annotations

import pytest

from sluicegate.domain.births import Births
from sluicegate.lab.profile.mst_bench import throughputs
from sluicegate.runlog.batch_log import BatchRecord


def batch(number: int, ended_s: float, rows: int) -> BatchRecord:
    return BatchRecord(number, ended_s - 0.5, ended_s, 0.5, rows, rows, 1, None, Births())


def test_batches_of_many_rows_and_of_few_in_turn_give_one_throughput() -> None:
    ends = [1.0 * n for n in range(13)]
    turns = [batch(n, at_s, 150 if n % 2 else 50) for n, at_s in enumerate(ends)]
    assert throughputs(turns, span_s=2.0) == pytest.approx([100.0] * 6)


def test_a_throughput_that_rises_is_seen_to_rise() -> None:
    rising = [batch(n, float(n), 10 * n) for n in range(13)]
    found = throughputs(rising, span_s=3.0)
    assert found == sorted(found)
    assert found[-1] > 3 * found[0]


def test_what_is_left_over_at_the_end_is_no_sample() -> None:
    assert len(throughputs([batch(n, float(n), 10) for n in range(9)], span_s=3.0)) == 2
