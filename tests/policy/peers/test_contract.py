"""What holds for every peer, whatever it is shown."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.policy.peers.driving import driven

from sluicegate.domain import (
    Batch,
    Edge,
    Forecast,
    Goal,
    Limits,
    Observation,
    Operator,
    OperatorObservation,
    Situation,
    Topology,
)
from sluicegate.policy.peers import (
    Dhalion,
    Ds2,
    DStreamsAllocation,
    FlinkAutoscaler,
    Hindsight,
    Hpa,
    Keda,
    RecentPeak,
    SparkCoreAllocation,
    StaticPeak,
)
from sluicegate.policy.policy import Policy

PEERS: tuple[Policy[Any], ...] = (
    Ds2(),
    FlinkAutoscaler(),
    DStreamsAllocation(),
    SparkCoreAllocation(),
    Hpa(),
    Keda(),
    Dhalion(),
    RecentPeak(),
    StaticPeak(),
    Hindsight((10.0, 1e4, 0.0)),
)
CHAIN = Topology(
    "chain",
    (Operator("a", 100.0), Operator("b", 3.0), Operator("c", 4000.0)),
    (Edge("source", "a"), Edge("a", "b", 0.01), Edge("a", "c"), Edge("b", "c", 0.0)),
)
LOOP = Topology(
    "loop", (Operator("a", 50.0), Operator("b", 7.0)), (Edge("source", "a"), Edge("a", "b", 0.5), Edge("b", "a", 0.5))
)

shares = st.none() | st.floats(0, 1)
rates = st.floats(0, 1e7)
operators = st.builds(
    OperatorObservation,
    arrivals_per_s=st.none() | rates,
    service_per_s=st.none() | st.floats(0, 1e5),
    utilisation=shares,
    queue_rows=st.none() | st.floats(0, 1e9),
    backpressure=shares,
    batches=st.lists(
        st.builds(Batch, rows=rates, processors=st.integers(1, 9), duration_s=st.floats(0, 1e4)), max_size=2
    ).map(tuple),
)
limits = st.builds(
    Limits,
    budget=st.none() | st.integers(1, 60),
    least=st.integers(1, 3),
    most=st.integers(3, 500),
    most_of=st.dictionaries(st.sampled_from(["a", "b"]), st.integers(1, 9)),
    slots_per_executor=st.integers(1, 4),
)


@st.composite
def histories(draw: st.DrawFn) -> list[Situation]:
    """A few moments of one pipeline, at irregular times."""
    topology, bounds = draw(st.sampled_from([CHAIN, LOOP])), draw(limits)
    now_s, situations = 0.0, []
    for _ in range(draw(st.integers(1, 5))):
        now_s += draw(st.sampled_from([0.0, 1.0, 15.0, 60.0, 61.5, 600.0, 4000.0]))
        names, rate = st.sampled_from(topology.names), draw(rates)
        seen = Observation(
            now_s,
            rate,
            draw(st.dictionaries(names, st.integers(1, 400))),
            draw(st.dictionaries(names, operators)),
            backlog_rows=draw(st.none() | st.floats(0, 1e9)),
            pending_tasks=draw(st.none() | st.integers(0, 10**7)),
            running_tasks=draw(st.none() | st.integers(0, 10**4)),
            rescaling=draw(st.booleans()),
        )
        given_rates = draw(st.dictionaries(names, rates))
        forecast = draw(st.sampled_from([None, Forecast(60.0, np.array([rate + 1.0]), np.array([2.0]))]))
        situations.append(Situation(now_s, topology, seen, rate, given_rates, Goal(), bounds, forecast))
    return situations


@pytest.mark.parametrize("policy", PEERS, ids=lambda policy: policy.name)
@settings(max_examples=20, deadline=None)
@given(situations=histories())
def test_a_peer_keeps_the_limits_gives_reasons_and_repeats_itself(
    policy: Policy[Any], situations: list[Situation]
) -> None:
    proposals = driven(policy, situations)
    assert proposals == driven(policy, situations)
    for situation, proposal in zip(situations, proposals, strict=True):
        bounds, names = situation.limits, situation.topology.names
        floors = {name: min(bounds.least, bounds.most_for(name)) for name in names}
        assert set(proposal.processors) == set(names)
        assert all(floors[name] <= proposal.processors[name] <= bounds.most_for(name) for name in names)
        assert bounds.budget is None or proposal.total <= max(bounds.budget, sum(floors.values()))
        assert proposal.reasons
        assert all(proposal.reasons)


@pytest.mark.parametrize("policy", PEERS, ids=lambda policy: policy.name)
def test_a_peer_never_changes_the_memory_it_is_handed(policy: Policy[Any]) -> None:
    seen = Observation(0.0, 450.0, {"a": 1, "b": 1, "c": 1})
    memory, _ = policy.propose(policy.start(), Situation(0.0, CHAIN, seen, 450.0, {}))
    before = repr(memory)
    policy.propose(memory, Situation(4000.0, CHAIN, seen, 900.0, {}))
    assert repr(memory) == before


def test_every_peer_has_a_name_of_its_own() -> None:
    assert len({policy.name for policy in PEERS}) == len(PEERS)
