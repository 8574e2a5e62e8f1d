from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.domain import BatchCosts, Edge, Operator, Topology
from sluicegate.model.microbatch import mean_sojourn_s
from sluicegate.model.stations import Stations
from sluicegate.policy.pace import paces

COSTS = BatchCosts(0.137, 0.029, 0.04)


def one(batch: BatchCosts | None = COSTS) -> Topology:
    return Topology("t", (Operator("a", 500.0, batch=batch),), (Edge("source", "a"),))


@given(st.floats(1, 1900), st.floats(0.1, 20))
def test_batches_start_as_rarely_as_the_promise_allows_and_never_more_rarely(rate: float, goal_s: float) -> None:
    stations = Stations.of(one(), np.array([rate]), rate)
    every_s = paces(stations, np.array([4]), goal_s)["a"]
    reached = mean_sojourn_s(rate, 500.0, 4, COSTS, every_s)
    back_to_back = mean_sojourn_s(rate, 500.0, 4, COSTS)
    assert every_s >= 0
    assert reached <= max(goal_s, back_to_back) * (1 + 1e-9)
    if every_s > 0 and every_s < 19.9 * back_to_back / 1.5:
        assert reached == pytest.approx(goal_s)


def test_queues_have_no_pace() -> None:
    assert paces(Stations.of(one(None), np.array([800.0]), 800.0), np.array([4]), 2.0) == {}


def test_without_a_goal_or_with_no_time_to_spare_batches_run_back_to_back() -> None:
    stations = Stations.of(one(), np.array([800.0]), 800.0)
    assert paces(stations, np.array([4]), None) == {"a": 0.0}
    assert paces(stations, np.array([4]), 0.3) == {"a": 0.0}
    assert paces(stations, np.array([1]), 2.0) == {"a": 0.0}


def test_a_queue_beside_batches_takes_its_part_of_the_promise() -> None:
    mixed = Topology(
        "t", (Operator("a", 500.0, batch=COSTS), Operator("b", 1.1)), (Edge("source", "a"), Edge("a", "b", 0.001))
    )
    alone = paces(Stations.of(one(), np.array([800.0]), 800.0), np.array([4]), 2.0)["a"]
    both = paces(Stations.of(mixed, np.array([800.0, 0.8]), 800.0), np.array([4, 1]), 2.0)["a"]
    assert both < alone
