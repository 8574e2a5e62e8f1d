from __future__ import annotations

import pytest

from sluicegate.domain import Edge, Operator, Topology
from sluicegate.place.redeployment import Act, RedeploymentStep, steps_without_loss

TOPOLOGY = Topology(
    "t",
    (Operator("read", 9.0), Operator("count", 9.0, stateful=True)),
    (Edge("source", "read"), Edge("read", "count")),
)


def acts(operator: str) -> list[Act]:
    return [step.act for step in steps_without_loss(TOPOLOGY, operator, "n1/1", "n2/1")]


def test_erratum_state_goes_first_then_rows() -> None:
    order = acts("count")
    assert order.index(Act.MOVE_STATE) < order.index(Act.SWITCH_UPSTREAM)
    # Rows are held and worked off before the state moves, or it would change behind the move's back.
    assert order.index(Act.HOLD_ROWS) < order.index(Act.DRAIN_OLD) < order.index(Act.MOVE_STATE)


@pytest.mark.parametrize("operator", ["read", "count"])
def test_the_old_instance_serves_until_the_replica_is_ready_and_goes_last(operator: str) -> None:
    order = acts(operator)
    assert order[:2] == [Act.START_REPLICA, Act.AWAIT_READY]
    assert order[-1] is Act.REMOVE_OLD
    assert order.index(Act.DRAIN_OLD) < order.index(Act.REMOVE_OLD)
    assert len(set(order)) == len(order)


def test_without_state_no_row_is_held_back() -> None:
    assert Act.HOLD_ROWS not in acts("read")
    assert Act.MOVE_STATE not in acts("read")


def test_each_step_names_where_it_happens() -> None:
    steps = {step.act: step for step in steps_without_loss(TOPOLOGY, "count", "n1/1", "n2/1")}
    assert steps[Act.MOVE_STATE] == RedeploymentStep(Act.MOVE_STATE, "count", ("n1/1", "n2/1"))
    assert steps[Act.SWITCH_UPSTREAM].at == ("read",)
    assert steps[Act.REMOVE_OLD].at == ("n1/1",)


def test_a_source_moves_like_an_instance_without_state() -> None:
    assert acts("source") == acts("read")
