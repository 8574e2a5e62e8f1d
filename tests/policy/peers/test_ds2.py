"""DS2's one pass."""

from __future__ import annotations

import pytest

from sluicegate.domain import BatchCosts, Edge, Limits, Observation, Operator, OperatorObservation, Situation, Topology
from sluicegate.errors import BadInput
from sluicegate.policy.peers import Ds2

DIAMOND = Topology(
    "t",
    (Operator("split", 200.0), Operator("left", 50.0), Operator("right", 40.0), Operator("join", 100.0)),
    (
        Edge("source", "split"),
        Edge("split", "left", 0.5),
        Edge("split", "right", 0.25),
        Edge("left", "join"),
        Edge("right", "join", 2.0),
    ),
)
LOOP = Topology("t", (Operator("a", 10.0),), (Edge("source", "a"), Edge("a", "a", 0.5)))


def _situation(
    rate: float, operators: dict[str, OperatorObservation] | None = None, limits: Limits | None = None
) -> Situation:
    seen = Observation(0.0, rate, dict.fromkeys(DIAMOND.names, 1), operators or {})
    return Situation(0.0, DIAMOND, seen, rate, {}, limits=limits or Limits())


def test_arrivals_are_propagated_through_splits_and_joins() -> None:
    # 800 -> split; 400 left, 200 right; 400 + 400 at the join
    assert Ds2().propose(None, _situation(800.0))[1].processors == {"split": 4, "left": 8, "right": 5, "join": 8}


def test_what_arrives_now_does_not_count_while_upstream_holds_it_back() -> None:
    held = _situation(800.0, {"join": OperatorObservation(arrivals_per_s=10.0)})
    assert Ds2().propose(None, held)[1].processors["join"] == 8


def test_the_true_rate_is_the_measured_one() -> None:
    slower = _situation(800.0, {"split": OperatorObservation(service_per_s=150.0)})
    assert Ds2().propose(None, slower)[1].processors["split"] == 6


def test_the_margin_is_added_before_rounding_up() -> None:
    assert Ds2(margin=0.1).propose(None, _situation(800.0))[1].processors == {
        "split": 5,  # 4.4
        "left": 9,  # 8.8
        "right": 6,  # 5.5
        "join": 9,  # 8.8
    }


def test_no_load_needs_one_processor_each() -> None:
    assert set(Ds2().propose(None, _situation(0.0))[1].processors.values()) == {1}


def test_upstream_comes_first_in_the_reasons() -> None:
    reasons = Ds2().propose(None, _situation(800.0))[1].reasons
    assert reasons[0] == "split: 800 rows/s / 200 rows/s each x 1: 4"
    assert reasons[-1].startswith("join")


def test_a_loop_is_sized_by_measured_arrivals_and_said_to_be_no_ds2() -> None:
    looped = Situation(0.0, LOOP, Observation(0.0, 20.0, {"a": 1}), 20.0, {"a": 39.0})
    proposal = Ds2().propose(None, looped)[1]
    assert proposal.processors == {"a": 4}
    assert not proposal.feasible
    assert "loop" in proposal.reasons[0]


def test_a_budget_cuts_back_and_says_so() -> None:
    proposal = Ds2().propose(None, _situation(800.0, limits=Limits(budget=10)))[1]
    assert proposal.total == 10
    assert not proposal.feasible


def test_a_negative_margin_is_refused() -> None:
    with pytest.raises(BadInput, match="margin"):
        Ds2(margin=-0.1)


def test_batches_are_sized_by_the_time_of_rows_alone() -> None:
    """Of back-to-back batches rows over batch time is the load itself, so every size would seem right."""
    one = Topology("t", (Operator("a", 500.0, batch=BatchCosts(0.137, 0.029)),), (Edge("source", "a"),))
    seen = Observation(0.0, 100.0, {"a": 4}, {"a": OperatorObservation(100.0, 25.0)})
    assert Ds2().propose(None, Situation(0.0, one, seen, 100.0, {"a": 100.0}))[1].processors == {"a": 1}
