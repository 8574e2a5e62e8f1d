from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.domain import BatchCosts
from sluicegate.errors import BadInput
from sluicegate.model.microbatch import batch_s, mean_sojourn_s, settled_batch_s

COSTS = BatchCosts(overhead_s=0.137, per_task_s=0.029, commit_s=0.04)


def test_a_settled_batch_takes_in_what_arrives_while_it_runs() -> None:
    b = settled_batch_s(800.0, 500.0, 4, COSTS.overhead_s, COSTS.per_task_s)
    assert batch_s(800.0 * b, 4, 500.0, COSTS) == pytest.approx(b)


def test_a_row_waits_half_a_batch_and_then_through_one_less_the_commit() -> None:
    b = settled_batch_s(800.0, 500.0, 4, COSTS.overhead_s, COSTS.per_task_s)
    assert mean_sojourn_s(800.0, 500.0, 4, COSTS) == pytest.approx(1.5 * b - 0.04)


def test_a_slower_trigger_makes_rows_wait_for_it() -> None:
    assert mean_sojourn_s(800.0, 500.0, 4, COSTS, every_s=2.0) == pytest.approx(
        1.0 + batch_s(1600.0, 4, 500.0, COSTS) - 0.04
    )


def test_a_trigger_faster_than_the_batches_changes_nothing() -> None:
    assert mean_sojourn_s(800.0, 500.0, 4, COSTS, every_s=0.01) == mean_sojourn_s(800.0, 500.0, 4, COSTS)


def test_batches_that_cannot_keep_up_only_grow() -> None:
    assert mean_sojourn_s(2000.0, 500.0, 4, COSTS) == math.inf


@given(st.floats(1, 5000), st.floats(10, 1000), st.floats(0.01, 1), st.floats(0.001, 0.2))
def test_no_number_of_processors_beats_the_best(rate: float, service: float, o: float, c: float) -> None:
    costs, a = BatchCosts(o, c), rate / service
    best = a + math.sqrt(a * (o + c * a) / c)  # where the derivative is 0
    near = min(mean_sojourn_s(rate, service, max(k, 1), costs) for k in (math.floor(best), math.ceil(best)))
    least = int(a) + 1
    for k in range(least, least + 40):
        assert mean_sojourn_s(rate, service, k, costs) >= near * (1 - 1e-9)


@pytest.mark.parametrize("bad", [(-1.0, 1.0, 1), (1.0, 0.0, 1), (1.0, 1.0, 0), (math.inf, 1.0, 1)])
def test_impossible_batches_are_clear_errors(bad: tuple[float, float, int]) -> None:
    with pytest.raises(BadInput):
        mean_sojourn_s(*bad, COSTS)
