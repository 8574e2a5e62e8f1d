"""Claims about the chance of a late step."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from sluicegate.policy.late_chance import late_chance, thinned, weighed

NORMAL = ndtri((np.arange(4000) + 0.5) / 4000)
ONE = np.ones(1)


@pytest.mark.parametrize("capacity", [20.0, 22.0, 24.0, 26.0])
def test_normal_load_and_normal_capacity_give_the_normal_chance(capacity: float) -> None:
    points, weights = thinned(NORMAL)
    chance = late_chance(20 * ONE, ONE, points, weights, capacity, 1.2)
    assert chance == pytest.approx(float(ndtr((20 - capacity) / np.hypot(1.0, 1.2))), rel=0.05)


def test_the_chance_is_the_mean_over_the_steps() -> None:
    points, weights = thinned(NORMAL)
    both = late_chance(np.array([10.0, 1000.0]), np.ones(2), points, weights, 100.0, 5.0)
    assert both == pytest.approx(0.5)


def test_the_best_number_is_that_of_a_search_through_all() -> None:
    sizes = np.arange(1.0, 61.0)
    points, weights = thinned(NORMAL)
    for price in (0.1, 5.0, 100.0, 5000.0):
        costs = [k + price * late_chance(20 * ONE, 2 * ONE, points, weights, float(k), 0.05 * k) for k in range(10, 61)]
        best = weighed(20 * ONE, 2 * ONE, NORMAL, sizes, 0.05 * sizes, 10, price)[0]
        assert costs[best - 10] == pytest.approx(min(costs))


def test_a_load_of_nothing_needs_one_machine() -> None:
    sizes = np.arange(1.0, 11.0)
    assert weighed(0 * ONE, 0 * ONE, NORMAL, sizes, 0.05 * sizes, 10, 1000.0)[0] == 1


def test_fewer_machines_must_also_do_until_new_ones_could_serve() -> None:
    sizes, falling = np.arange(1.0, 41.0), np.array([20.0, 16.0, 12.0])
    at_the_end = weighed(falling[2:], ONE, NORMAL, sizes, 0.05 * sizes, 25, 100.0)[0]
    on_the_way = weighed(falling, np.ones(3), NORMAL, sizes, 0.05 * sizes, 25, 100.0, 2)[0]
    assert at_the_end < 20 < on_the_way < 25


def test_more_machines_are_weighed_by_the_steps_they_can_serve() -> None:
    sizes, climbing = np.arange(1.0, 41.0), np.array([10.0, 15.0, 20.0])
    at_the_end = weighed(climbing[2:], ONE, NORMAL, sizes, 0.05 * sizes, 12, 100.0)
    assert weighed(climbing, np.ones(3), NORMAL, sizes, 0.05 * sizes, 12, 100.0, 2) == at_the_end
