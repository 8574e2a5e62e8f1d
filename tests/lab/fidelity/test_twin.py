"""The twin of a measured pipeline: one way a row, the work of all rows, lumps and scatter played out."""

from __future__ import annotations

import numpy as np
import pytest

from sluicegate.domain import BatchCosts, Edge, Operator, Topology
from sluicegate.domain.births import Births
from sluicegate.lab.fidelity.twin import Twin, measured_law, twin_of
from sluicegate.model.microbatch import mean_sojourn_s
from sluicegate.runlog.batch_log import BatchRecord

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


GUESSED = Topology("t", (Operator("a", 1000.0, batch=BatchCosts(0.1, 0.02)),), (Edge("source", "a"), Edge("a", "sink")))


def batches(noise: float, rows_a_batch: int = 100) -> list[BatchRecord]:
    """b = 0.2 s + 0.03 s k + n/(k 250/s), published 50 ms before its end."""
    rng, found = np.random.default_rng(3), []
    for i in range(400):
        k, rows = 1 + i % 4, rows_a_batch + 7 * (i % 11)
        took_s = (0.2 + 0.03 * k) * (1 + noise * float(rng.standard_normal())) + rows / (250.0 * k)
        at_s = 10.0 * i
        born = Births.of([(at_s, float(rows))])
        found.append(BatchRecord(i, at_s, at_s + took_s - 0.05, took_s, rows, rows, k, None, born, work_s=rows / 250.0))
    return found


def test_the_law_its_scatter_and_its_fit_come_out_of_the_batches() -> None:
    found = batches(noise=0.1)
    law = measured_law(GUESSED, {"a": found}, fed_rows=sum(r.rows for r in found) / 2)
    (a,) = law.topology.operators
    assert a.batch is not None
    assert a.service_per_s == pytest.approx(250.0, rel=0.02)
    assert (a.batch.overhead_s, a.batch.per_task_s) == pytest.approx((0.2, 0.03), rel=0.15)
    assert a.batch.commit_s == pytest.approx(0.05)
    assert law.noise_scv["a"] == pytest.approx(0.01, rel=0.2)
    assert law.visited["a"] == pytest.approx(2.0)
    assert 0.5 < law.r2["a"] < 1.0


def test_a_burst_is_taken_at_the_rate_of_the_slowest_operator_in_one_batch() -> None:
    found = batches(noise=0.0)
    law = measured_law(GUESSED, {"a": found}, fed_rows=sum(r.rows for r in found))
    assert law.burst_per_s(1000.0, {"a": 2}) == pytest.approx(1000 / (0.26 + 2.0), rel=0.02)


def test_busy_is_work_a_second() -> None:
    found = batches(noise=0.0)
    law = measured_law(GUESSED, {"a": found}, fed_rows=sum(r.rows for r in found))
    assert law.busy(500.0)["a"] == pytest.approx(2.0, rel=0.02)


def test_what_an_operator_took_beyond_what_was_sent_to_it_came_round_its_loop() -> None:
    looped = Topology("t", GUESSED.operators, (*GUESSED.edges, Edge("a", "a")))
    found = batches(noise=0.0)
    law = measured_law(looped, {"a": found}, fed_rows=sum(r.rows for r in found) / 4)
    assert law.returning == {"a": pytest.approx(0.75)}
    assert measured_law(GUESSED, {"a": found}, fed_rows=1.0).returning == {}
