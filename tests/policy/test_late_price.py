"""Claims about the price of a late step, which follows what is left of a budget of late ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.policy.late_price import MOST_OWED, MOST_PRICE, MOST_SAVED, PRICE_0, LateBudget

NEED = 10.0
shares = st.sampled_from([0.5, 0.05, 0.005, 0.001])


def first_price(budget: float) -> float:
    return LateBudget().price(NEED, budget)


@pytest.mark.parametrize("right", [0.03, 0.1, 0.3], ids=["a smooth load", "a noisy one", "one of bursts"])
@pytest.mark.parametrize("budget", [0.005, 0.001])
def test_a_long_run_is_late_as_often_as_it_may_be_whatever_price_its_load_needs(right: float, budget: float) -> None:
    """Late steps are as many as allowed at the ``right`` price and fall with the price."""
    rng, memory, steps = np.random.default_rng(8), LateBudget(), 80_000
    for chance in rng.random(steps).tolist():
        price = memory.price(NEED, budget)
        late = chance < budget * (right * NEED / budget / price)
        memory = memory.judged(float(late), 1, budget)
    assert 0.8 * budget * steps <= memory.late <= budget * steps


@pytest.mark.parametrize(("steps", "kept_back"), [(1_000, 0.27), (10_000, 0.13), (100_000, 0.045)])
def test_less_is_kept_back_the_longer_it_runs(steps: int, kept_back: float) -> None:
    """With this share of the budget unspent the price is the first one."""
    budget = 0.005
    dear, cheap = (
        LateBudget().judged((1 - share) * budget * steps, steps, budget).price(NEED, budget)
        for share in (kept_back - 0.015, kept_back + 0.015)
    )
    assert cheap < first_price(budget) < dear


def test_a_calm_year_does_not_pay_for_a_late_day() -> None:
    budget = 0.005
    memory = LateBudget().judged(0.0, 525_600, budget)
    afterwards = memory.judged(MOST_SAVED * budget + 1, 1, budget)
    assert memory.price(NEED, budget) < first_price(budget) / 40
    assert afterwards.price(NEED, budget) >= first_price(budget)


def test_a_disaster_is_not_paid_for_all_year() -> None:
    budget = 0.005
    memory = LateBudget().judged(1_440.0, 1_440, budget)
    assert memory.price(NEED, budget) == pytest.approx(MOST_PRICE * NEED / budget)
    assert memory.judged(0.0, int(1.2 * MOST_OWED), budget).price(NEED, budget) < first_price(budget)


def test_what_is_told_at_once_or_step_by_step_is_the_same() -> None:
    at_once = LateBudget().judged(3.0, 1_000, 0.005)
    by_step = LateBudget()
    for step in range(1_000):
        by_step = by_step.judged(float(step < 3), 1, 0.005)
    assert by_step.saved == pytest.approx(at_once.saved)
    assert (by_step.steps, by_step.late) == (at_once.steps, at_once.late)


@given(shares, st.lists(st.tuples(st.integers(1, 1_000_000), st.floats(0.0, 1.0)), max_size=5), st.floats(0.01, 1e6))
def test_the_price_is_above_nothing_and_below_its_bound(
    budget: float, told: list[tuple[int, float]], need: float
) -> None:
    memory = LateBudget()
    for steps, share in told:
        memory = memory.judged(share * steps, steps, budget)
    assert 0 < memory.price(need, budget) <= need * MOST_PRICE / budget * (1 + 1e-9)


@given(shares, st.integers(1, 100_000), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_more_late_steps_never_make_the_next_one_cheaper(budget: float, steps: int, one: float, other: float) -> None:
    few, many = (
        LateBudget().judged(share * steps, steps, budget).price(NEED, budget) for share in sorted((one, other))
    )
    assert few <= many * (1 + 1e-12)


def test_it_starts_at_the_first_price() -> None:
    assert first_price(0.005) == pytest.approx(PRICE_0 * NEED / 0.005)
