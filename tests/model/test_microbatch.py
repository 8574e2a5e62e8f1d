from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.domain import BatchCosts
from sluicegate.errors import BadInput
from sluicegate.model.microbatch import back_to_back, batch_s, empty_share, mean_sojourn_s, settled_batch_s

COSTS = BatchCosts(overhead_s=0.137, per_task_s=0.029, commit_s=0.04)


def test_a_settled_batch_takes_in_what_arrives_while_it_runs() -> None:
    b = settled_batch_s(800.0, 500.0, 4, COSTS.overhead_s, COSTS.per_task_s)
    assert batch_s(800.0 * b, 4, 500.0, COSTS) == pytest.approx(b)


def test_a_row_waits_half_a_batch_and_then_through_one_less_the_commit() -> None:
    """And longer by what chance adds: a row meets long batches more often, and counts itself."""
    b, m, rho = settled_batch_s(800.0, 500.0, 4, COSTS.overhead_s, COSTS.per_task_s), 1 / 2000, 0.4
    by_chance = m * (2 + rho) / (2 * (1 - rho**2))
    assert mean_sojourn_s(800.0, 500.0, 4, COSTS) == pytest.approx(1.5 * b + by_chance - 0.04, rel=1e-9)


def test_a_row_that_comes_alone_waits_for_nothing() -> None:
    alone = batch_s(1, 4, 5.0, COSTS) - 0.04
    assert mean_sojourn_s(0.0, 5.0, 4, COSTS) == pytest.approx(alone)
    assert mean_sojourn_s(1e-9, 5.0, 4, COSTS) == pytest.approx(alone)
    assert mean_sojourn_s(1e-12, 5.0, 4, COSTS, every_s=60.0) == pytest.approx(alone)


def played_s(rate: float, service: float, k: int, costs: BatchCosts, batches: int = 60_000) -> tuple[float, float]:
    """Mean and variance of a row's time to the end of its batch, row by row, by chance."""
    rng, own, each = np.random.default_rng(7), costs.overhead_s + costs.per_task_s * k, 1 / (k * service)
    took, sojourns = own + each, []
    for _ in range(batches):
        at = rng.random(rng.poisson(rate * took)) * took
        alone = not len(at)
        following = own + each * max(len(at), 1)
        sojourns.append(np.array([following]) if alone else took - at + following)
        took = following
    found = np.concatenate(sojourns)
    return float(found.mean()), float(found.var())


@pytest.mark.parametrize("busy", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("rate", [0.5, 4.0, 60.0])
def test_the_law_is_that_of_batches_played_row_by_row(rate: float, busy: float) -> None:
    """Few rows a second too: three a batch, or batches that wait for their first row."""
    costs, k = BatchCosts(0.3, 0.05), 2
    service = rate / (busy * k)
    mean, variance = played_s(rate, service, k, costs)
    law = back_to_back(rate, service, k, costs.overhead_s, costs.per_task_s)
    assert law[0] == pytest.approx(mean, rel=0.02)
    assert law[1] == pytest.approx(variance, rel=0.08)


@given(st.floats(1e-3, 1e3), st.floats(0.01, 0.999))
def test_batches_without_a_row_are_as_many_as_their_own_equation_asks(rows: float, busy: float) -> None:
    """R = lambda E[b] + p0 rows a batch, of which at least one in each: R >= 1, and p0 falls with load."""
    empty = empty_share(rows, busy)
    assert 0 <= empty <= math.exp(-rows)
    read = rows * (1 + busy / rows * empty) / (1 - busy) + empty
    assert read >= 1 - 1e-9
    assert empty_share(rows, busy * 0.9) >= empty


@pytest.mark.parametrize("busy", [0.899, 0.9, 0.901, 0.95, 0.999, 0.9999])
def test_the_integral_at_the_end_of_the_sums_changes_nothing(busy: float) -> None:
    for rows in (1e-3, 0.1, 1.0, 5.0):
        u, expected, weighted = 1.0, 0.0, 0.0
        for _ in range(3_000_000):
            expected += rows * u
            u = -math.expm1(-busy * u)
            weighted += u * math.exp(-expected)
            if u < 1e-13:
                break
        assert empty_share(rows, busy) == pytest.approx(math.exp(-expected) / (1 + weighted), rel=1e-3, abs=1e-15)


def test_a_slower_trigger_makes_rows_wait_for_it() -> None:
    assert mean_sojourn_s(800.0, 500.0, 4, COSTS, every_s=2.0) == pytest.approx(
        1.0 + batch_s(1601.0, 4, 500.0, COSTS) - 0.04
    )


def test_a_trigger_faster_than_the_batches_changes_nothing() -> None:
    assert mean_sojourn_s(800.0, 500.0, 4, COSTS, every_s=0.01) == mean_sojourn_s(800.0, 500.0, 4, COSTS)


def test_batches_that_cannot_keep_up_only_grow() -> None:
    assert mean_sojourn_s(2000.0, 500.0, 4, COSTS) == math.inf


@given(st.floats(1, 5000), st.floats(10, 1000), st.floats(0.01, 1), st.floats(0.001, 0.2))
def test_no_number_of_processors_beats_the_best(rate: float, service: float, o: float, c: float) -> None:
    """Where a batch has many rows: where the derivative of 1.5 b* is 0."""
    costs, a = BatchCosts(o, c), rate / service
    best = a + math.sqrt(a * (o + c * a) / c)
    near = min(mean_sojourn_s(rate, service, max(k, 1), costs) for k in (math.floor(best), math.ceil(best)))
    rows_a_batch = rate * (o + c * best)
    least = int(a) + 1
    for k in range(least, least + 40):
        assert mean_sojourn_s(rate, service, k, costs) >= near * (1 - 1 / rows_a_batch - 1e-9)


@given(st.floats(0.01, 5000), st.floats(0.1, 1000), st.floats(0.01, 1), st.floats(0, 0.2))
def test_each_further_processor_gains_less_so_that_the_greedy_finds_the_best(
    rate: float, service: float, o: float, c: float
) -> None:
    costs, least = BatchCosts(o, c), int(rate / service) + 1
    told = [mean_sojourn_s(rate, service, k, costs) for k in range(least, least + 60)]
    best = told.index(min(told))
    gains = [before - after for before, after in pairwise(told[: best + 1])]
    assert all(gain > 0 for gain in gains)
    assert all(after <= before + 1e-9 * told[0] for before, after in pairwise(gains))


@pytest.mark.parametrize("bad", [(-1.0, 1.0, 1), (1.0, 0.0, 1), (1.0, 1.0, 0), (math.inf, 1.0, 1)])
def test_impossible_batches_are_clear_errors(bad: tuple[float, float, int]) -> None:
    with pytest.raises(BadInput):
        mean_sojourn_s(*bad, COSTS)
