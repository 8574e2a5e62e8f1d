from __future__ import annotations

import numpy as np
import pytest

from sluicegate.domain.births import Births
from sluicegate.runlog.batch_log import BatchRecord
from sluicegate.spark.observe.variability import Variability


def batch(rows: int, work_s: float | None, cold: bool = False) -> BatchRecord:
    return BatchRecord(1, 0.0, 1.0, 1.0, rows, rows, 1, None, Births(), cold, work_s)


def test_poisson_arrivals_have_a_variability_of_one() -> None:
    rng, seen = np.random.default_rng(5), Variability()
    found = []
    for _ in range(600):
        seen.take(int(rng.poisson(200)), ())
        found.append(seen.arrival_scv)
    told = [scv for scv in found if scv is not None]
    assert sum(told) / len(told) == pytest.approx(1.0, abs=0.15)


def test_a_load_that_rises_steadily_is_not_uneven() -> None:
    seen = Variability()
    for rows in range(1000, 1300, 10):
        seen.take(rows, ())
    assert seen.arrival_scv is not None
    assert seen.arrival_scv < 0.1


def test_few_looks_say_nothing_and_no_rows_are_not_even() -> None:
    seen = Variability()
    for _ in range(4):
        seen.take(100, ())
    assert seen.arrival_scv is None
    for _ in range(40):
        seen.take(0, ())
    assert seen.arrival_scv is None


def test_service_varies_as_the_task_time_a_row_does_and_cold_or_untimed_batches_do_not_count() -> None:
    seen = Variability()
    seen.take(
        1, [batch(100, 1.0), batch(100, 3.0)] * 4 + [batch(100, 90.0, cold=True), batch(100, None), batch(0, 5.0)]
    )
    assert seen.service_scv == pytest.approx(0.25)


def test_exponential_task_times_have_a_variability_of_one() -> None:
    rng, seen = np.random.default_rng(1), Variability()
    found = []
    for _ in range(100):
        seen.take(1, [batch(1, float(time_s)) for time_s in rng.exponential(0.01, 50)])
        found.append(seen.service_scv)
    told = [scv for scv in found if scv is not None]
    assert sum(told) / len(told) == pytest.approx(1.0, abs=0.1)


def test_one_batch_has_no_variability_and_work_of_no_time_none_either() -> None:
    seen = Variability()
    seen.take(1, [batch(100, 1.0)])
    assert seen.service_scv is None
    seen = Variability()
    seen.take(1, [batch(100, 0.0)] * 8)
    assert seen.service_scv is None
