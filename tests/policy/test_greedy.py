from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.domain import BatchCosts, Edge, Limits, Operator, Topology
from sluicegate.errors import Infeasible
from sluicegate.model.stations import Stations
from sluicegate.model.traffic import visits
from sluicegate.policy.greedy import greedy_path, smallest
from sluicegate.policy.papers.drs import assign_processors, min_processors


@st.composite
def networks(draw: st.DrawFn, batches: bool = False) -> Stations:
    """Small random networks: a chain with splits back and forth, any variability, perhaps micro-batches."""
    n = draw(st.integers(1, 3))
    rates = st.floats(0.5, 20)
    operators = tuple(
        Operator(
            f"o{i}",
            draw(rates),
            arrival_scv=draw(st.floats(0.1, 3)),
            service_scv=draw(st.floats(0.1, 3)),
            batch=BatchCosts(draw(st.floats(0.05, 0.5)), draw(st.floats(0.001, 0.1))) if batches else None,
        )
        for i in range(n)
    )
    edges = [Edge("source", "o0")] + [Edge(f"o{i}", f"o{i + 1}", draw(st.floats(0.1, 2))) for i in range(n - 1)]
    if n > 1:
        product = math.prod(edge.selectivity for edge in edges)
        edges.append(Edge(f"o{n - 1}", "o0", draw(st.floats(0, 0.5)) / max(product, 1)))
    topology = Topology("t", operators, tuple(edges))
    rate = draw(st.floats(0.5, 30))
    return Stations.of(topology, visits(topology) * rate, rate)


def brute_force(stations: Stations, budget: int) -> float:
    """The least E[T] over every allocation of at most ``budget`` processors."""
    start = smallest(stations, Limits()).tolist()
    spare = budget - sum(start)
    ranges = [range(k, k + spare + 1) for k in start]
    fits = (k for k in itertools.product(*ranges) if sum(k) <= budget)
    return min(stations.total_mean_s(np.array(k)) for k in fits)


@given(networks(), st.integers(0, 5))
def test_greedy_equals_brute_force_under_queues(stations: Stations, more: int) -> None:
    budget = int(smallest(stations, Limits()).sum()) + more
    k = assign_processors(stations, budget)
    assert int(k.sum()) == budget
    assert stations.total_mean_s(k) == pytest.approx(brute_force(stations, budget), rel=1e-9)


@given(networks(batches=True), st.integers(0, 5))
def test_greedy_equals_brute_force_under_micro_batches(stations: Stations, more: int) -> None:
    budget = int(smallest(stations, Limits()).sum()) + more
    k = assign_processors(stations, budget)
    assert int(k.sum()) <= budget
    assert stations.total_mean_s(k) == pytest.approx(brute_force(stations, budget), rel=1e-9)


@given(networks(), st.floats(1.05, 3))
def test_fewest_processors_equal_brute_force(stations: Stations, slack: float) -> None:
    target = slack * float(np.sum(stations.weights / stations.laws.service_per_s))
    k = min_processors(stations, target)
    assert stations.total_mean_s(k) <= target * (1 + 1e-9)
    total = int(k.sum())
    if total > int(smallest(stations, Limits()).sum()) and total < 14:
        assert brute_force(stations, total - 1) > target * (1 - 1e-9)  # equal but for rounding is not kept


def test_the_greedy_stops_where_more_processors_slow_batches_down() -> None:
    t = Topology("t", (Operator("a", 500.0, batch=BatchCosts(0.137, 0.029)),), (Edge("source", "a"),))
    stations = Stations.of(t, np.array([800.0]), 800.0)
    assert assign_processors(stations, 100).tolist() == [5]


def test_answers_are_nested() -> None:
    t = Topology("t", (Operator("a", 2.0), Operator("b", 3.0)), (Edge("source", "a"), Edge("a", "b")))
    stations = Stations.of(t, np.array([5.0, 5.0]), 5.0)
    path = greedy_path(stations, Limits(), 30)
    for total in range(5, 31):
        assert path.after(total - 5).tolist() == assign_processors(stations, total).tolist()


def test_a_budget_far_beyond_use_is_still_spent_where_work_is() -> None:
    t = Topology("t", (Operator("a", 2.0), Operator("b", 20.0)), (Edge("source", "a"), Edge("a", "b")))
    stations = Stations.of(t, np.array([5.0, 5.0]), 5.0)
    k = assign_processors(stations, 5000)
    assert int(k.sum()) == 5000
    assert k[0] > k[1]


def test_limits_per_operator_hold() -> None:
    t = Topology("t", (Operator("a", 2.0), Operator("b", 3.0)), (Edge("source", "a"), Edge("a", "b")))
    stations = Stations.of(t, np.array([5.0, 5.0]), 5.0)
    k = assign_processors(stations, 20, Limits(most_of={"a": 4}, least=2))
    assert k.tolist() == [4, 16]


def test_a_load_no_limit_can_carry_is_said_in_numbers() -> None:
    t = Topology("t", (Operator("a", 1e-9),), (Edge("source", "a"),))
    with pytest.raises(Infeasible, match=r"'a' needs more than .* processors"):
        smallest(Stations.of(t, np.array([1e15]), 1e15), Limits())
