"""The world a policy is shown while it settles."""

from __future__ import annotations

import math

import pytest

from sluicegate.domain import Edge, Operator, Topology
from sluicegate.model.erlang import mean_wait_s
from sluicegate.policy.steady_load import steady_load

CHAIN = Topology("t", (Operator("a", 10.0), Operator("b", 20.0)), (Edge("source", "a"), Edge("a", "b", 0.5)))
NONE_BEHIND = {"a": 0.0, "b": 0.0}


def test_a_stable_operator_is_measured_as_erlang_says() -> None:
    seen = steady_load(CHAIN, 30.0, 60.0).observe(0.0, {"a": 4, "b": 1}, NONE_BEHIND)
    wait_s = mean_wait_s(30.0, 10.0, 4)
    assert seen.of("a").utilisation == 0.75
    assert seen.of("a").queue_rows == pytest.approx(30.0 * wait_s)
    assert seen.of("a").sojourn_s == pytest.approx(wait_s + 0.1)
    assert seen.of("a").backpressure == 0.0
    assert seen.of("a").saturated_per_s is None
    assert seen.throughput_per_s == 20.0 / 0.5 - 10.0


def test_an_operator_that_cannot_keep_up_holds_its_upstream_back_and_falls_behind() -> None:
    load = steady_load(CHAIN, 30.0, 60.0)
    seen = load.observe(0.0, {"a": 2, "b": 1}, NONE_BEHIND)
    assert seen.of("a").backpressure == pytest.approx(1 / 3)
    assert (seen.of("a").utilisation, seen.of("a").saturated_per_s, seen.throughput_per_s) == (1.0, 20.0, 20.0)
    assert load.backlog_after({"a": 2, "b": 1}, NONE_BEHIND) == {"a": 600.0, "b": 0.0}


def test_a_backlog_keeps_the_operator_busy_until_it_is_worked_off() -> None:
    load = steady_load(CHAIN, 30.0, 60.0)
    assert load.observe(0.0, {"a": 4, "b": 1}, {"a": 601.0, "b": 0.0}).of("a").utilisation == 1.0
    assert load.observe(0.0, {"a": 4, "b": 1}, {"a": 300.0, "b": 0.0}).of("a").utilisation == 35 / 40
    assert load.backlog_after({"a": 4, "b": 1}, {"a": 601.0, "b": 0.0}) == {"a": 1.0, "b": 0.0}
    assert load.backlog_after({"a": 4, "b": 1}, {"a": 599.0, "b": 0.0}) == NONE_BEHIND


def test_the_sojourn_counts_an_operator_as_often_as_a_row_visits_it() -> None:
    seen = steady_load(CHAIN, 0.0, 60.0).observe(0.0, {"a": 1, "b": 1}, NONE_BEHIND)
    assert seen.sojourn is not None
    assert seen.sojourn.mean_s == pytest.approx(0.1 + 0.5 * 0.05)


def test_a_pipeline_whose_sources_send_nothing_has_no_sojourn() -> None:
    silent = Topology("t", (Operator("a", 10.0),), (Edge("source", "a"),), {"source": 0.0})
    assert steady_load(silent, 30.0, 60.0).observe(0.0, {"a": 1}, {"a": 0.0}).sojourn is None


def test_tasks_are_processors_at_work_and_whole_seconds_of_waiting_work() -> None:
    seen = steady_load(CHAIN, 30.0, 60.0).observe(0.0, {"a": 2, "b": 1}, {"a": 600.0, "b": 0.0})
    assert seen.running_tasks == 3  # 2 + 0.75
    assert seen.pending_tasks == 60
    assert seen.backlog_rows is not None
    assert seen.backlog_rows > 600.0


def test_next_to_saturation_no_more_than_a_step_of_waiting_counts() -> None:
    seen = steady_load(CHAIN, 40.0 * (1 - 1e-9), 60.0).observe(0.0, {"a": 4, "b": 2}, NONE_BEHIND)
    assert seen.of("a").queue_rows == pytest.approx(40.0 * 60.0)
    exactly = steady_load(CHAIN, 40.0, 60.0).observe(0.0, {"a": 4, "b": 2}, NONE_BEHIND)
    assert math.isfinite(exactly.of("a").sojourn_s or math.inf)
