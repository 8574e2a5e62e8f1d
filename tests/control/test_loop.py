from __future__ import annotations

import copy
import math
from dataclasses import replace
from itertools import pairwise

import pytest

from sluicegate.control import loop
from sluicegate.control.loop import Settings, tick
from sluicegate.control.rules import Rules
from sluicegate.domain import (
    Batch,
    BatchCosts,
    Edge,
    Goal,
    Limits,
    Observation,
    Operator,
    OperatorObservation,
    Sojourn,
    Topology,
)
from sluicegate.forecast.catalogue import forecaster
from sluicegate.measure import Smoothing
from sluicegate.policy.catalogue import POLICIES
from sluicegate.policy.papers.drs import Drs
from sluicegate.policy.sluicegate import SluicegatePolicy

TWO = Topology("t", (Operator("a", 10.0), Operator("b", 5.0)), (Edge("source", "a"), Edge("a", "b", 0.5)))
BASE = Settings(TWO, Drs(), Goal(mean_s=1.0), rules=Rules.none(), smoothing=Smoothing(alpha=0.0))


def seen(at_s: float, rate: float | None, running: dict[str, int]) -> Observation:
    return Observation(at_s, rate, running)


def test_a_tick_moves_processors_to_where_the_load_is() -> None:
    _, decision = tick(loop.start(BASE), seen(0.0, 40.0, {"a": 1, "b": 1}), 0.0)
    assert decision.running["a"] > 4
    assert decision.running["b"] > 4
    assert decision.reasons


def test_a_tick_without_a_rate_changes_nothing_and_says_why() -> None:
    _, decision = tick(loop.start(BASE), seen(0.0, None, {"a": 1, "b": 1}), 0.0)
    assert dict(decision.running) == {"a": 1, "b": 1}
    assert decision.refusals[0].why == "no arrival rate was measured: what runs stays"


def test_one_absurd_service_rate_does_not_spoil_all_later_plans() -> None:
    state = loop.start(replace(BASE, policy=SluicegatePolicy()))
    for at_s, service_per_s in enumerate((10.0, 1e300, 10.0, 11.0)):
        measured = {"a": OperatorObservation(service_per_s=service_per_s)}
        observation = replace(seen(float(at_s), 40.0, {"a": 5, "b": 5}), operators=measured)
        state, decision = tick(state, observation, float(at_s))
    assert state.learned.service_rsd["a"] < 1
    assert decision.running["a"] >= 4
    assert not any("nan" in reason.split() for reason in decision.reasons)


def test_an_operator_that_does_not_run_yet_is_waited_for() -> None:
    _, decision = tick(loop.start(BASE), seen(0.0, 40.0, {"a": 1}), 0.0)
    assert decision.refusals[0].why == "some operators do not run yet: what runs stays"


def test_a_stale_observation_is_not_acted_upon() -> None:
    state = loop.start(replace(BASE, rules=Rules(cooldown_s=0.0, stale_after_s=30.0)))
    _, decision = tick(state, seen(0.0, 40.0, {"a": 1, "b": 1}), now_s=100.0)
    assert not decision.moves
    assert decision.refusals[0].rule == "metrics"


def test_a_tick_never_changes_the_state_it_was_given() -> None:
    first = loop.start(BASE)
    kept = copy.deepcopy((first.ledger, first.gauges.smoothed.current.tolist(), first.plan_memory))
    tick(first, seen(0.0, 40.0, {"a": 1, "b": 1}), 0.0)
    assert (first.ledger, first.gauges.smoothed.current.tolist(), first.plan_memory) == kept


def test_the_same_tick_twice_decides_the_same() -> None:
    first, what = loop.start(BASE), seen(0.0, 40.0, {"a": 1, "b": 1})
    assert tick(first, what, 0.0)[1] == tick(first, what, 0.0)[1]


def test_measured_rates_replace_what_the_topology_said() -> None:
    slow = {"a": OperatorObservation(arrivals_per_s=40.0, service_per_s=2.0)}
    _, decision = tick(loop.start(BASE), replace(seen(0.0, 40.0, {"a": 1, "b": 1}), operators=slow), 0.0)
    assert decision.running["a"] > 20


def test_smoothing_holds_back_a_short_burst() -> None:
    state = loop.start(replace(BASE, smoothing=Smoothing(window=6)))
    running = {"a": 5, "b": 5}
    for minute in range(6):
        state, _ = tick(state, seen(60.0 * minute, 20.0, running), 60.0 * minute)
    _, burst = tick(state, seen(360.0, 60.0, running), 360.0)
    assert burst.running["a"] < 5 + 3


def test_several_sources_are_not_counted_twice() -> None:
    two = Topology("t", (Operator("a", 10.0),), (Edge("source:x", "a"), Edge("source:y", "a")))
    one = Topology("t", (Operator("a", 10.0),), (Edge("source", "a"),))
    # 80 rows/s enter in all, from however many sources
    wanted = [
        tick(loop.start(replace(BASE, topology=t)), seen(0.0, 80.0, {"a": 1}), 0.0)[1].running["a"] for t in (one, two)
    ]
    assert wanted[0] == wanted[1] > 8


def test_batch_costs_are_learned_from_batches() -> None:
    one = Topology("t", (Operator("a", 100.0, batch=BatchCosts(0.5, 0.2)),), (Edge("source", "a"),))
    state = loop.start(replace(BASE, topology=one, policy=SluicegatePolicy()))
    batches = tuple(Batch(n, k, 0.137 + 0.029 * k + n / (k * 500.0)) for k in (1, 2, 4) for n in range(100, 2000, 50))
    what = replace(seen(0.0, 800.0, {"a": 3}), operators={"a": OperatorObservation(batches=batches)})
    state, decision = tick(state, what, 0.0)
    assert state.learned.topology.operator("a").service_per_s == pytest.approx(500.0, rel=0.05)
    assert decision.running["a"] <= 5
    assert decision.pace_s["a"] >= 0


def test_every_change_of_pace_is_a_change_of_the_decision_and_a_noisy_load_makes_few() -> None:
    one = Topology("t", (Operator("a", 500.0, batch=BatchCosts(0.137, 0.029)),), (Edge("source", "a"),))
    rules = Rules(settle_down_s=20.0, cooldown_s=0.0)
    state = loop.start(replace(BASE, topology=one, policy=SluicegatePolicy(), goal=Goal(mean_s=2.0), rules=rules))
    paces, changes = [0.0], 0
    for look in range(100):
        now_s, rate = 2.0 * look, 400.0 + 150.0 * math.sin(2.4 * look)
        state, decision = tick(state, seen(now_s, rate, {"a": 4}), now_s)
        named = [change for change in decision.changes if change.what == "pace of a"]
        paces.append(decision.pace_s["a"])
        assert bool(named) == (paces[-1] != paces[-2])
        changes += len(named)
    assert paces[-1] > 0
    assert 1 <= changes <= 10


def test_the_forecaster_learns_once_a_step_whatever_the_pace_of_ticks() -> None:
    state = loop.start(replace(BASE, forecaster=forecaster("recent-peak", step_s=60.0)))
    lessons = []
    for tick_number in range(25):
        now = 15.0 * tick_number
        state, _ = tick(state, seen(now, 20.0 + tick_number, {"a": 9, "b": 9}), now)
        lessons.append(state.forecast_memory)
    changes = sum(a is not b for a, b in pairwise(lessons))
    assert changes == 6


def test_sluicegate_plans_for_the_forecast_not_for_now() -> None:
    rising = loop.start(
        replace(BASE, policy=SluicegatePolicy(), forecaster=forecaster("recent-peak"), goal=Goal(mean_s=1.0))
    )
    flat = loop.start(replace(BASE, policy=SluicegatePolicy(), goal=Goal(mean_s=1.0)))
    running = {"a": 5, "b": 5}
    for minute in range(41):
        what = seen(60.0 * minute, 90.0 if minute % 2 else 30.0, running)
        rising, ahead = tick(rising, what, 60.0 * minute)
        flat, now = tick(flat, what, 60.0 * minute)
    assert sum(ahead.running.values()) > sum(now.running.values())
    assert "forecast" in ahead.reasons[0]


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_every_policy_can_drive_the_loop(name: str) -> None:
    """A load that triples and falls back, with a crude pipeline that queues what it cannot serve."""
    limits = Limits(most=40)
    load = [20.0] * 20 + [60.0] * 20 + [20.0] * 20
    policy = POLICIES[name].build(tuple(load))
    state = loop.start(Settings(TWO, policy, Goal(mean_s=1.0), limits, Rules(cooldown_s=0.0, settle_down_s=0.0)))
    running, backlog = {"a": 3, "b": 3}, 0.0
    for minute, rate in enumerate(load):
        served = min(running["a"] * 10.0, running["b"] * 10.0)
        backlog = max(backlog + (rate - served) * 60.0, 0.0)
        busy = min(rate / served, 1.0)
        operators = {
            n: OperatorObservation(rate * v, mu, utilisation=busy, queue_rows=backlog, backpressure=float(busy >= 1))
            for n, v, mu in (("a", 1.0, 10.0), ("b", 0.5, 5.0))
        }
        what = Observation(
            60.0 * minute, rate, running, operators, Sojourn(0.3 + backlog / served), backlog_rows=backlog
        )
        state, decision = tick(state, what, 60.0 * minute)
        running = dict(decision.running)
        assert all(1 <= k <= 40 for k in running.values())
        assert decision.reasons or decision.refusals
    assert math.isfinite(backlog)


def test_key_groups_are_part_of_the_decision_and_move_by_their_measured_load() -> None:
    """All the load is in the first half of the groups, which neighbours together give to one task."""
    state, running = loop.start(BASE), {"a": 2, "b": 2}
    loads = (4.0, 4.0, 4.0, 4.0, 1.0, 1.0, 1.0, 1.0)
    operators = {"a": OperatorObservation(4.0, 10.0, group_s=loads), "b": OperatorObservation(2.0, 5.0)}
    groups = {"a": (0, 0, 0, 0, 1, 1, 1, 1)}
    what = Observation(0.0, 4.0, running, operators, groups=groups)
    _, moved = tick(state, replace(what, rescaling=False), 0.0)
    if moved.running["a"] == 2:
        assert moved.groups["a"] != groups["a"]
    assert any(change.what == "key groups of a" and change.reason for change in moved.changes)
    _, waits = tick(state, replace(what, rescaling=True), 0.0)
    assert waits.groups == groups
