"""The twin of a measured pipeline: one way a row, the work of all rows, lumps and scatter played out."""

from __future__ import annotations

import pytest

from sluicegate.domain import BatchCosts, Edge, Operator, Topology
from sluicegate.lab.simulate.twin import Twin, twin_of
from sluicegate.model.microbatch import mean_sojourn_s

COSTS = BatchCosts(overhead_s=0.2, per_task_s=0.02, commit_s=0.03)


def operator(name: str, service_per_s: float, overhead_s: float = COSTS.overhead_s) -> Operator:
    return Operator(name, service_per_s, batch=BatchCosts(overhead_s, COSTS.per_task_s, COSTS.commit_s))


def one(service_per_s: float = 100.0) -> Topology:
    return Topology("t", (operator("a", service_per_s),), (Edge("source", "a"), Edge("a", "sink")))


def mean_s(twin: Twin, rate: float, **k: int) -> float:
    told = twin.predict(rate, k, seconds=4000.0, seed=1).mean_s
    assert told is not None
    return told


@pytest.mark.parametrize(("rate", "k"), [(30.0, 1), (120.0, 2), (250.0, 4)])
def test_a_single_operator_obeys_the_law(rate: float, k: int) -> None:
    assert mean_s(twin_of(one(), {"a": 1.0}), rate, a=k) == pytest.approx(
        mean_sojourn_s(rate, 100.0, k, COSTS), rel=0.05
    )


def test_an_operator_that_sees_each_row_four_times_has_four_times_the_work() -> None:
    assert mean_s(twin_of(one(400.0), {"a": 4.0}), 60.0, a=1) == pytest.approx(
        mean_s(twin_of(one(), {"a": 1.0}), 60.0, a=1)
    )


def test_behind_a_slower_operator_nobody_waits_for_a_batch_to_begin() -> None:
    """Its rows come all at once, when it is idle: one batch of them is all they see of it."""
    slow, quick = operator("a", 1e6, overhead_s=1.0), operator("b", 1e6, overhead_s=0.1)
    chain = Topology("t", (slow, quick), (Edge("source", "a"), Edge("a", "b"), Edge("b", "sink")))
    told = twin_of(chain, {"a": 1.0, "b": 1.0}).predict(100.0, {"a": 1, "b": 1}, 2000.0, seed=1)
    assert told.operators["b"].mean_s == pytest.approx(0.1 + COSTS.per_task_s - COSTS.commit_s, abs=0.01)


def test_scatter_makes_a_busy_operator_slower() -> None:
    even, uneven = (twin_of(one(), {"a": 1.0}, {"a": scv}) for scv in (0.0, 1.0))
    assert mean_s(uneven, 80.0, a=1) > 1.1 * mean_s(even, 80.0, a=1)


def test_rows_that_are_fed_in_lumps_wait_for_them_too() -> None:
    at_once, in_lumps = (twin_of(one(1e6), {"a": 1.0}, feed_s=every) for every in (0.0, 2.0))
    assert mean_s(in_lumps, 50.0, a=1) - mean_s(at_once, 50.0, a=1) == pytest.approx(1.0 - 0.5 * 0.22, abs=0.05)


def test_at_a_split_a_row_goes_one_way_and_both_ways_have_all_the_work() -> None:
    ends = (operator("b", 100.0), operator("c", 100.0))
    edges = (Edge("source", "a"), Edge("a", "b"), Edge("a", "c"), Edge("b", "sink"), Edge("c", "sink"))
    split = Topology("t", (operator("a", 1e6), *ends), edges)
    told = twin_of(split, {"a": 1.0, "b": 1.0, "c": 1.0}).predict(60.0, {"a": 1, "b": 1, "c": 1}, 2000.0, seed=1)
    assert told.arrivals_per_s == pytest.approx(60.0, rel=0.05)
    assert told.operators["b"].arrivals_per_s == pytest.approx(30.0, rel=0.05)
    assert told.operators["b"].utilisation == pytest.approx(0.6, rel=0.05)


def looping() -> Topology:
    edges = (Edge("source", "a"), Edge("a", "a", 0.5), Edge("a", "sink"))
    return Topology("t", (operator("a", 100.0),), edges)


def test_rows_go_round_a_loop_as_often_as_was_measured() -> None:
    told = twin_of(looping(), {"a": 2.0}, returning={"a": 0.5}).predict(30.0, {"a": 1}, 2000.0, seed=1)
    assert told.operators["a"].arrivals_per_s == pytest.approx(60.0, rel=0.05)
    assert told.operators["a"].utilisation == pytest.approx(0.6, rel=0.05)
    assert told.mean_s is not None
    assert told.mean_s == pytest.approx(2 * (told.operators["a"].mean_s or 0.0), rel=0.05), "twice through it"


def test_a_loop_that_nothing_was_seen_to_go_round_is_work_and_no_way() -> None:
    looped = looping()
    assert mean_s(twin_of(looped, {"a": 2.0}), 30.0, a=1) == pytest.approx(
        mean_s(twin_of(one(50.0), {"a": 1.0}), 30.0, a=1)
    )
