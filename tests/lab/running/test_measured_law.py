from __future__ import annotations

import numpy as np
import pytest

from sluicegate.domain import BatchCosts, Edge, Operator, Topology
from sluicegate.domain.births import Births
from sluicegate.lab.fidelity.measured_law import measured_law
from sluicegate.runlog.batch_log import BatchRecord

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
