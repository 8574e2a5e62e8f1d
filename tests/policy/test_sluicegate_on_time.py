from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sluicegate.domain import Edge, Forecast, Goal, Observation, Operator, OperatorObservation, Situation, Topology
from sluicegate.policy.demand import situation_at
from sluicegate.policy.on_time import Steps
from sluicegate.policy.sluicegate_on_time import OnTimePolicy, OnTimeState, useful_rate

ONE = Topology("t", (Operator("a", 100.0),), (Edge("source", "a"),))
GOAL = Goal(on_time=0.995)


def seen(rate: float, machines: int, at_s: float = 0.0, saturated: float | None = None) -> Situation:
    operator = OperatorObservation(arrivals_per_s=rate, saturated_per_s=saturated)
    observation = Observation(at_s, rate, {"a": machines}, {"a": operator})
    ahead = Forecast(60.0, np.full(12, rate), np.full(12, 0.05 * rate))
    return replace(situation_at(ONE, rate, GOAL), now_s=at_s, observation=observation, forecast=ahead)


def after(situations: list[Situation], policy: OnTimePolicy | None = None) -> tuple[OnTimeState | None, int]:
    policy, total = policy or OnTimePolicy(), 0
    memory = policy.start()
    for situation in situations:
        memory, proposal = policy.propose(memory, situation)
        total = proposal.total
    return memory, total


def test_before_there_is_a_forecast_a_margin_is_kept() -> None:
    _, total = after([replace(seen(900.0, 9), forecast=None)])
    assert 11 <= total <= 13


def test_enough_machines_for_the_load_and_its_spread() -> None:
    _, total = after([seen(900.0, 11, 60.0 * i) for i in range(30)])
    assert 10 <= total <= 14


def test_a_higher_target_asks_for_no_less() -> None:
    low = [replace(seen(900.0, 11, 60.0 * i), goal=Goal(on_time=0.9)) for i in range(30)]
    high = [replace(seen(900.0, 11, 60.0 * i), goal=Goal(on_time=0.999)) for i in range(30)]
    assert after(low)[1] <= after(high)[1]


def test_a_capacity_that_turns_out_lower_is_learned() -> None:
    honest = [seen(900.0, 11, 60.0 * i) for i in range(60)]
    weaker = [seen(900.0, 11, 60.0 * i, saturated=700.0) for i in range(60)]
    assert after(weaker)[1] > after(honest)[1]
    memory = after(weaker)[0]
    assert memory is not None
    assert memory.judged.budget.late == 60


def test_useful_time_tells_the_capacity_of_a_step_on_time() -> None:
    """Though no step was ever late: 11 processors carry 1,600, not the 1,100 that was thought."""
    thought = [seen(900.0, 11, 60.0 * i) for i in range(60)]
    faster = OperatorObservation(arrivals_per_s=900.0, service_per_s=1600.0 / 11)
    told = [replace(one, observation=replace(one.observation, operators={"a": faster})) for one in thought]
    assert after(told)[1] < after(thought)[1]


def test_the_capacity_of_a_pipeline_is_that_of_the_operator_which_lets_least_through() -> None:
    two = Topology("t", (Operator("a", 100.0), Operator("b", 50.0)), (Edge("source", "a"), Edge("a", "b", 2.0)))
    operators = {"a": OperatorObservation(service_per_s=90.0), "b": OperatorObservation(service_per_s=60.0)}
    situation = replace(
        situation_at(two, 100.0, GOAL), observation=Observation(0.0, 100.0, {"a": 3, "b": 4}, operators)
    )
    assert useful_rate(situation) == pytest.approx(min(3 * 90.0, 4 * 60.0 / 2))
    lacking = replace(situation.observation, operators={"a": operators["a"]})
    assert useful_rate(replace(situation, observation=lacking)) is None


def test_between_the_decisions_of_a_cycle_it_only_learns() -> None:
    policy = OnTimePolicy(timing=Steps(cycle_steps=10, startup_steps=2, lead_steps=2))
    memory = after([seen(900.0, 11, 60.0 * i) for i in range(9)], policy)[0]
    asked = [policy.propose(memory, seen(2000.0, 11, 60.0 * i))[1].total for i in (9, 10, 11)]
    assert len(set(asked)) == 1
    assert policy.propose(memory, seen(2000.0, 11, 60.0 * 18))[1].total > asked[0]


def test_machines_are_spread_over_the_operators_that_need_them() -> None:
    two = Topology("t", (Operator("a", 100.0), Operator("b", 50.0)), (Edge("source", "a"), Edge("a", "b")))
    situation = replace(
        situation_at(two, 900.0, GOAL),
        observation=Observation(0.0, 900.0, {"a": 10, "b": 20}),
        forecast=Forecast(60.0, np.full(12, 900.0), np.full(12, 45.0)),
    )
    _, proposal = OnTimePolicy().propose(None, situation)
    assert proposal.processors["b"] == pytest.approx(2 * proposal.processors["a"], abs=2)
    assert proposal.processors["a"] * 100.0 > 900.0
