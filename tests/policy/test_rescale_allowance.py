from __future__ import annotations

import numpy as np
import pytest

from sluicegate.domain import Forecast
from sluicegate.policy.on_time import Capacity, OnTime, Timing
from sluicegate.policy.rescale_allowance import LEAST, MOST, RescaleAllowance

CYCLE = Timing(10, 2, 2)
SIZES = np.arange(1.0, 129)


def test_patience_is_as_it_was_while_rescales_keep_to_the_allowance() -> None:
    assert RescaleAllowance(followed=100, moves=40).patience == 1.0


def test_more_moves_make_more_patient_and_fewer_less_within_bounds() -> None:
    found = [RescaleAllowance(followed=100, moves=moves).patience for moves in range(0, 200, 10)]
    assert found == sorted(found)
    assert found[0] == pytest.approx(LEAST)
    assert found[-1] == pytest.approx(MOST)


def test_the_recent_peak_is_that_of_the_last_ten_loads_and_a_fifth() -> None:
    allowance = RescaleAllowance()
    for load in [500.0, *[100.0] * 9]:
        allowance = allowance.saw(load)
    assert allowance.demand_per_s == pytest.approx(600.0)
    assert allowance.saw(100.0).demand_per_s == pytest.approx(120.0)
    assert len(allowance.saw(1.0).loads_per_s) == 10


def test_only_changes_of_what_would_follow_the_peak_are_counted() -> None:
    allowance = RescaleAllowance()
    for machines in (5, 5, 6, 6, 5):
        allowance = allowance.decided(machines)
    assert allowance.followed == 2


def moves_of(jumps: bool, seed: int) -> tuple[int, int]:
    """How often the rule moves in cycles, and how often following the peak would, over a load that jumps or hardly."""
    rng, rule = np.random.default_rng(seed), OnTime(0.995, CYCLE, price=200.0)
    memory, running, curve = rule.start(), 12, Capacity(SIZES, 0.05 * SIZES)
    for _ in range(600):
        load = 10.0 + (4.0 * rng.random() if jumps else 0.3 * rng.standard_normal())
        for _ in range(10):
            memory = rule.saw(memory, load)
        forecast = Forecast(60.0, np.full(12, load), np.full(12, 0.6))
        memory, choice = rule.decide(memory, forecast, curve, running)
        running = choice.machines
    return memory.allowance.moves, memory.allowance.followed


def test_a_load_that_jumps_is_followed_at_most_half_as_often_as_its_peak_would_be() -> None:
    moves, followed = moves_of(jumps=True, seed=1)
    assert followed > 300
    assert moves <= 0.5 * followed


def test_a_calm_load_is_worth_few_moves() -> None:
    assert moves_of(jumps=False, seed=2)[0] < moves_of(jumps=True, seed=2)[0]
