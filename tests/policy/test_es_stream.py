from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluicegate.config.topology_file import read_topology
from sluicegate.domain import (
    Edge,
    Goal,
    Limits,
    NodeObservation,
    Observation,
    Operator,
    Proposal,
    Situation,
    Topology,
)
from sluicegate.errors import BadInput
from sluicegate.policy.demand import situation_at
from sluicegate.policy.papers.es_stream import EsStream, EsStreamMemory
from sluicegate.policy.policy import Policy
from sluicegate.policy.spread import spread, sustained_per_s

EXAMPLES = Path(__file__).parents[2] / "examples"
POLICY: Policy[EsStreamMemory | None] = EsStream()


def chain(*rates: float) -> Topology:
    names = [f"op{i}" for i in range(len(rates))]
    edges = [Edge("source", names[0]), *(Edge(a, b) for a, b in pairwise(names))]
    return Topology("chain", tuple(Operator(n, r) for n, r in zip(names, rates, strict=True)), tuple(edges))


def at(topology: Topology, now_s: float, rate_per_s: float, limits: Limits | None = None) -> Situation:
    return replace(situation_at(topology, rate_per_s, limits=limits), now_s=now_s)


def follow(topology: Topology, *steps: tuple[float, float]) -> list[Proposal]:
    memory, found = POLICY.start(), []
    for now_s, rate in steps:
        memory, proposal = POLICY.propose(memory, at(topology, now_s, rate))
        found.append(proposal)
    return found


@pytest.mark.parametrize(
    ("example", "totals", "held_per_s"),
    [("commodity_count", [14, 24, 19], 15_000), ("top_n", [18, 27, 23], 13_500)],
)
def test_the_fitted_examples_follow_the_rate_with_the_papers_instances(
    example: str, totals: list[int], held_per_s: float
) -> None:
    topology = read_topology(EXAMPLES / f"{example}.toml")
    found = follow(topology, (0, 1800), (100, 3600), (160, 2700))
    assert [proposal.total for proposal in found] == totals
    assert all(proposal.feasible for proposal in found)
    most = sustained_per_s(topology, spread(topology, 13 * 2 * 2))
    assert most == pytest.approx(held_per_s, rel=0.02)


def test_the_first_call_acts_at_once() -> None:
    (first,) = follow(chain(100.0), (0, 1000))
    assert first.total > 10
    assert first.reasons[0].startswith("first plan")


def test_a_change_within_the_trigger_is_held() -> None:
    before, after = follow(chain(100.0), (0, 1000), (60, 1150))
    assert after.processors == before.processors
    assert after.reasons == ("held: input 1,000 rows/s -> 1,150 rows/s (+15%), within 20%",)


@pytest.mark.parametrize("rate", [1500.0, 500.0, 0.0])
def test_erratum_the_trigger_works_both_ways(rate: float) -> None:
    before, after = follow(chain(100.0), (0, 1000), (60, rate))
    assert after.processors != before.processors


def test_a_changing_rate_waits_ten_seconds() -> None:
    first, early, due = follow(chain(100.0), (0, 1000), (9.9, 2000), (10, 2000))
    assert early.processors == first.processors
    assert due.total > early.total


def test_dearer_rows_at_a_stable_rate_are_seen_after_fifteen_seconds() -> None:
    cheap, dear = chain(100.0), chain(60.0)
    memory, first = POLICY.propose(None, at(cheap, 0, 1000))
    memory, early = POLICY.propose(memory, at(dear, 14.9, 1000))
    memory, due = POLICY.propose(memory, at(dear, 15, 1000))
    assert early.processors == first.processors
    assert due.total > first.total
    assert "the load of op0 is +67% off its plan" in due.reasons[0]


def test_the_first_rows_after_none_raise_k_at_once() -> None:
    nothing, something = follow(chain(100.0), (0, 0.0), (60, 500.0))
    assert (nothing.total, something.total) == (1, 10)


def test_erratum_arrivals_are_those_the_upstream_will_send_with_its_new_instances() -> None:
    # Measured behind a bottleneck: op1 sees 100 rows/s now, and will see 1,000 once op0 keeps up.
    topology = chain(100.0, 100.0)
    squeezed = replace(at(topology, 0, 1000), operator_arrivals_per_s={"op0": 1000.0, "op1": 100.0})
    _, proposal = POLICY.propose(None, squeezed)
    assert proposal.processors["op1"] == proposal.processors["op0"]


def test_an_upstream_that_may_not_grow_sends_only_what_it_can() -> None:
    topology = chain(100.0, 100.0)
    _, proposal = POLICY.propose(None, at(topology, 0, 1000, Limits(most_of={"op0": 2})))
    assert proposal.processors == {"op0": 2, "op1": 5}
    assert not proposal.feasible


def test_a_loop_is_planned_from_the_arrivals_it_has() -> None:
    edges = (Edge("source", "a"), Edge("a", "b"), Edge("b", "a", 0.5))
    loop = Topology("loop", (Operator("a", 100.0), Operator("b", 100.0)), edges)
    _, proposal = POLICY.propose(None, at(loop, 0, 500))
    assert min(proposal.processors.values()) > 10


def test_new_operators_are_planned_at_once() -> None:
    memory, _ = POLICY.propose(None, at(chain(100.0), 0, 1000))
    _, proposal = POLICY.propose(memory, at(chain(100.0, 100.0), 1, 1000))
    assert set(proposal.processors) == {"op0", "op1"}


def test_a_held_plan_still_keeps_to_limits_that_have_changed() -> None:
    memory, _ = POLICY.propose(None, at(chain(100.0), 0, 1000))
    _, proposal = POLICY.propose(memory, at(chain(100.0), 1, 1000, Limits(budget=5)))
    assert (proposal.total, proposal.feasible) == (5, False)


def test_the_reasons_say_how_many_ran() -> None:
    situation = at(chain(100.0), 0, 1000)
    situation = replace(situation, observation=Observation(0.0, 1000.0, {"op0": 3}))
    _, proposal = POLICY.propose(None, situation)
    assert proposal.reasons[1].startswith("op0: 3 -> 16 instances for 1,000 rows/s at 100 rows/s each")


def test_erratum_beta_outside_0_to_1_is_refused() -> None:
    with pytest.raises(BadInput, match="share of a node"):
        EsStream(beta=4.0)
    with pytest.raises(BadInput, match="share of a node"):
        EsStream(beta_of={"op0": 0.0})


def test_an_operator_may_have_its_own_beta() -> None:
    _, proposal = EsStream(beta_of={"op1": 0.9}).propose(None, at(chain(100.0, 100.0), 0, 1000))
    assert proposal.processors["op1"] < proposal.processors["op0"]


rates = st.floats(0.5, 2000.0)


@settings(max_examples=60)
@given(
    st.lists(rates, min_size=1, max_size=5),
    st.lists(st.tuples(st.floats(0, 100), st.floats(0, 5000)), min_size=1, max_size=4),
    st.integers(1, 60),
    st.integers(1, 20),
)
def test_limits_are_always_kept(
    services: list[float], steps: list[tuple[float, float]], budget: int, most: int
) -> None:
    topology, limits = chain(*services), Limits(budget=max(budget, len(services)), most=most)
    memory = POLICY.start()
    for now_s, rate in steps:
        memory, proposal = POLICY.propose(memory, at(topology, now_s, rate, limits))
        assert set(proposal.processors) == set(topology.names)
        assert all(1 <= count <= most for count in proposal.processors.values())
        assert proposal.total <= (limits.budget or 0)


@settings(max_examples=60)
@given(st.lists(rates, min_size=1, max_size=5), st.floats(0, 5000))
def test_without_limits_every_operator_keeps_up(services: list[float], rate: float) -> None:
    topology = chain(*services)
    _, proposal = POLICY.propose(None, at(topology, 0, rate))
    assert proposal.feasible
    assert all(proposal.processors[o.name] * o.service_per_s > rate for o in topology.operators)


def test_a_load_that_no_number_of_processors_carries_is_infeasible_and_says_so() -> None:
    _, proposal = POLICY.propose(None, at(chain(1e-3), 0, 1e9))
    assert not proposal.feasible
    assert "cannot keep up" in proposal.reasons[1]
    assert math.isfinite(proposal.total)


def paced(load: float, rate_per_s: float, goal: Goal | None = None, **options: float) -> tuple[float | None, str]:
    """The pace of a stateful operator of 100 rows/s an instance, on a node that is so loaded."""
    one = Topology("t", (Operator("count", 100.0, stateful=True),), (Edge("source", "count"),))
    nodes = (NodeObservation("n1", load, hosts={"count": 1}),)
    situation = situation_at(one, rate_per_s, goal, Limits(most=1))
    situation = replace(situation, observation=Observation(0.0, rate_per_s, {"count": 1}, nodes=nodes))
    proposal = EsStream(**options).propose(None, situation)[1]  # type: ignore[arg-type]
    told = next((reason for reason in proposal.reasons if reason.startswith("pace of count: ")), "")
    return proposal.pace_s.get("count"), told


def test_state_is_backed_up_rarely_on_a_loaded_node_within_the_bound_on_repair() -> None:
    assert paced(0.3, 50.0)[0] == 0.5
    assert paced(0.9, 50.0, repair_s=2.0)[0] == pytest.approx(4.0), "half busy, an interval of 4 s is repaired in 2 s"
    pace, why = paced(0.9, 80.0, repair_s=2.0)
    assert pace == pytest.approx(2.5)
    assert why.endswith("a repair within 2 s allows 2.5 s")


def test_an_interval_never_delays_rows_beyond_a_share_of_the_promise() -> None:
    assert paced(0.9, 50.0, Goal(mean_s=3.0), repair_s=60.0)[0] == pytest.approx(0.9)


def test_operators_without_state_and_nodes_without_a_load_have_no_interval() -> None:
    _, plain = POLICY.propose(None, situation_at(chain(100.0), 50.0))
    assert plain.pace_s == {}
