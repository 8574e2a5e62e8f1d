"""The contract every registered policy keeps, whatever the pipeline and the load."""

from __future__ import annotations

import copy
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sluicegate.domain import (
    BatchCosts,
    Edge,
    Forecast,
    Goal,
    Limits,
    NodeObservation,
    Observation,
    Operator,
    OperatorObservation,
    Situation,
    Sojourn,
    Topology,
)
from sluicegate.model.traffic import visits
from sluicegate.policy.catalogue import POLICIES
from sluicegate.policy.demand import situation_at

NAMES = sorted(POLICIES)
# Those that size for the load they are told. (Es-Stream acts only on a change of 20%, reactive ones on what they see;
# their laws are tested on their own pages.)
MONOTONE = ["drs", "drs-gigk", "lsa", "ds2", "sluicegate", "recent-peak", "uncertainty-0", "uncertainty-1"]


@st.composite
def topologies(draw: st.DrawFn) -> Topology:
    n = draw(st.integers(1, 5))
    batch = draw(st.booleans())
    operators = tuple(
        Operator(
            f"o{i}",
            draw(st.floats(0.5, 5000)),
            arrival_scv=draw(st.floats(0, 4)),
            service_scv=draw(st.floats(0, 4)),
            stateful=draw(st.booleans()),
            batch=BatchCosts(draw(st.floats(0.01, 1)), draw(st.floats(0, 0.1))) if batch else None,
            cpu=draw(st.floats(0.05, 1)),
            memory=draw(st.floats(0, 0.5)),
        )
        for i in range(n)
    )
    feeds = [Edge(f"o{draw(st.integers(0, i - 1))}", f"o{i}", draw(st.floats(0, 3))) for i in range(1, n)]
    edges = [Edge("source", "o0"), *feeds]
    if n > 1 and draw(st.booleans()):
        edges.append(Edge(f"o{n - 1}", f"o{n - 1}", draw(st.floats(0, 0.9))))
    return Topology("t", operators, tuple(edges))


@st.composite
def situations(draw: st.DrawFn) -> Situation:
    topology = draw(topologies())
    rate = draw(st.one_of(st.just(0.0), st.floats(0.1, 3000)))
    limits = Limits(
        budget=draw(st.one_of(st.none(), st.integers(5, 300))), most=draw(st.sampled_from([1, 3, 50, 10_000]))
    )
    goal = draw(st.sampled_from([Goal(), Goal(mean_s=0.5), Goal(p95_s=2.0), Goal(mean_s=1.0, cost_per_hour=0.4)]))
    running = {name: draw(st.integers(1, 20)) for name in topology.names}
    base = situation_at(topology, rate, goal, limits)
    if not draw(st.booleans()):
        return base
    seen = {
        name: OperatorObservation(
            arrivals_per_s=base.operator_arrivals_per_s[name],
            service_per_s=draw(st.one_of(st.none(), st.floats(0.1, 1000))),
            utilisation=draw(st.one_of(st.none(), st.floats(0, 1))),
            queue_rows=draw(st.one_of(st.none(), st.floats(0, 1e6))),
            backpressure=draw(st.one_of(st.none(), st.floats(0, 1))),
            saturated_per_s=draw(st.one_of(st.none(), st.floats(1, 5000))),
            instance_queues=tuple(draw(st.lists(st.floats(0, 100), max_size=5))),
        )
        for name in topology.names
    }
    observation = Observation(
        0.0,
        rate,
        running,
        seen,
        sojourn=draw(st.one_of(st.none(), st.builds(Sojourn, st.floats(0, 100)))),
        backlog_rows=draw(st.one_of(st.none(), st.floats(0, 1e7))),
        nodes=(NodeObservation("n1", 0.5),),
        pending_tasks=draw(st.one_of(st.none(), st.integers(0, 1000))),
        running_tasks=draw(st.one_of(st.none(), st.integers(0, 100))),
    )
    forecast = None
    if draw(st.booleans()):
        mean = np.full(12, max(rate, 1.0)) * draw(st.floats(0.5, 2))
        forecast = Forecast(60.0, mean, mean * 0.1)
    return replace(base, observation=observation, forecast=forecast)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(situation=situations())
def test_a_proposal_is_whole_within_bounds_and_says_why(name: str, situation: Situation) -> None:
    policy = POLICIES[name].build((situation.arrivals_per_s,))
    memory = policy.start()
    for step in range(3):
        memory, proposal = policy.propose(memory, replace(situation, now_s=60.0 * step))
        assert set(proposal.processors) == set(situation.topology.names)
        for operator, count in proposal.processors.items():
            assert isinstance(count, int)
            assert 1 <= count <= max(situation.limits.most_for(operator), situation.limits.least)
        budget = situation.limits.budget
        if budget is not None and budget >= len(situation.topology.names):
            assert proposal.total <= budget
        assert proposal.reasons
        assert all(isinstance(reason, str) and reason.strip() for reason in proposal.reasons)
        assert all(share >= 0 for shares in proposal.shares.values() for share in shares)


@pytest.mark.parametrize("forecast", [None, Forecast(60.0, np.full(12, 61_400.0), np.full(12, 9_870.0))])
@pytest.mark.parametrize("name", NAMES)
def test_a_reason_writes_a_high_rate_in_full(name: str, forecast: Forecast | None) -> None:
    operators = (Operator("parse", 23_700.0), Operator("count", 12_300.0, stateful=True))
    topology = Topology("t", operators, (Edge("source", "parse"), Edge("parse", "count")))
    policy = POLICIES[name].build((48_200.0,))
    memory = policy.start()
    for step, load in enumerate((48_200.0, 61_400.0, 1_230_000.0)):
        situation = replace(situation_at(topology, load, Goal(mean_s=2.0), Limits()), now_s=600.0 * step)
        memory, proposal = policy.propose(memory, replace(situation, forecast=forecast))
        assert not [reason for reason in proposal.reasons if re.search(r"\de\+\d", reason)]


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(situation=situations())
def test_the_same_memory_and_situation_give_the_same_proposal(name: str, situation: Situation) -> None:
    policy = POLICIES[name].build((situation.arrivals_per_s,))
    memory = policy.start()
    kept = copy.deepcopy(memory)
    _, first = policy.propose(memory, situation)
    _, second = policy.propose(kept, situation)
    _, third = policy.propose(memory, situation)
    assert first == second == third


@pytest.mark.parametrize("name", MONOTONE)
@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(topology=topologies(), rate=st.floats(1, 500), factor=st.floats(1.01, 4))
def test_more_load_never_asks_for_less(name: str, topology: Topology, rate: float, factor: float) -> None:
    totals = []
    for load in (rate, rate * factor):
        policy = POLICIES[name].build((load,))
        _, proposal = policy.propose(policy.start(), situation_at(topology, load))
        totals.append(proposal.total)
    assert totals[0] <= totals[1], visits(topology).tolist()


@pytest.mark.parametrize("name", list(POLICIES))
def test_a_policy_has_one_name(name: str) -> None:
    assert POLICIES[name].build((100.0,)).name == name
