"""What a plan says of its batches is what they do when they are simulated."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluicegate.control.planning import make_plan
from sluicegate.domain import BatchCosts, Edge, Goal, Operator, Topology
from sluicegate.lab.simulate import Behaviour, simulate


def batched(service_per_s: float = 500.0) -> Topology:
    operator = Operator("a", service_per_s, batch=BatchCosts(0.14, 0.03, 0.04))
    return Topology("t", (operator,), (Edge("source", "a"), Edge("a", "sink")))


def test_a_plan_tells_the_mean_that_its_pace_gives() -> None:
    found = make_plan(batched(), 800.0, "sluicegate", Goal(mean_s=10.0))
    pace = found.proposal.pace_s
    behaviour = Behaviour(pace_s=pace)
    played = simulate(batched(), 800.0, found.proposal.processors, 2000.0, 1, mode="declared", behaviour=behaviour)
    (told,) = [reason for reason in found.reasons if "batches start at most every" in reason]
    assert f"every {pace['a']:.3g} s" in told
    assert float(told.split("mean is ")[1].removesuffix(" s")) == pytest.approx(played.mean_s, rel=0.02)


def test_batches_that_follow_each_other_at_once_have_no_pace_to_tell() -> None:
    found = make_plan(batched(), 800.0, "sluicegate", Goal(p95_s=5.0))
    assert not [reason for reason in found.reasons if "batches start" in reason]


@settings(max_examples=40)
@given(
    rate=st.floats(0.1, 5000),
    busy=st.floats(0.05, 30),
    tight_s=st.floats(0.3, 20),
    looser=st.floats(1.01, 5),
    what=st.sampled_from(["mean", "p95", "p99"]),
    policy=st.sampled_from(["sluicegate", "drs-batch"]),
)
def test_a_looser_promise_never_costs_more_in_batches(
    rate: float, busy: float, tight_s: float, looser: float, what: str, policy: str
) -> None:
    topology = batched(rate / busy)
    plans = [make_plan(topology, rate, policy, Goal(**{f"{what}_s": s})) for s in (tight_s, tight_s * looser)]
    if plans[0].feasible:
        assert plans[1].feasible
        assert plans[1].proposal.total <= plans[0].proposal.total
