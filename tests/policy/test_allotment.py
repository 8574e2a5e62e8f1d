"""What LSA and MBA have in common: endpoints, limits, the shape of a proposal."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluicegate.domain import (
    Bundle,
    Edge,
    Limits,
    Observation,
    Operator,
    ProfilePoint,
    Situation,
    TaskProfile,
    Topology,
)
from sluicegate.errors import BadInput
from sluicegate.model.task_profile import ROUNDING, rate_per_s
from sluicegate.policy.allotment import bundles_of, slots_for, whole_units
from sluicegate.policy.papers.lsa import Lsa
from sluicegate.policy.papers.mba import Mba

BLOB = TaskProfile("blob", (ProfilePoint(1, 2.0, 0.07, 0.24), ProfilePoint(50, 30.0, 0.77, 0.31)))
FALLING = TaskProfile("batch", (ProfilePoint(1, 60.0, 0.58, 0.12), ProfilePoint(2, 50.0, 0.52, 0.03)))
PAIR = Topology(
    "pair",
    (Operator("blob", 2.0, profile=BLOB), Operator("batch", 60.0, profile=FALLING)),
    (Edge("source", "blob"), Edge("blob", "batch"), Edge("batch", "sink")),
)
PLANNERS = (Lsa(), Mba())
either = pytest.mark.parametrize("planner", PLANNERS, ids=lambda planner: planner.name)


def situation(blob: float, batch: float, limits: Limits | None = None, topology: Topology = PAIR) -> Situation:
    rates = {"blob": blob, "batch": batch}
    return Situation(0.0, topology, Observation(0.0, blob, {}), blob, rates, limits=limits or Limits())


@settings(max_examples=150)
@given(
    st.sampled_from(PLANNERS),
    st.floats(0.0, 500.0),
    st.floats(0.0, 500.0),
    st.integers(1, 6),
    st.integers(6, 400),
    st.one_of(st.none(), st.integers(12, 300)),
)
def test_no_plan_exceeds_its_limits_or_claims_what_it_does_not_carry(
    planner: Lsa | Mba, blob: float, batch: float, least: int, most: int, budget: int | None
) -> None:
    limits = Limits(budget=budget, least=least, most=most)
    _, made = planner.propose(None, situation(blob, batch, limits))
    assert set(made.processors) == {"blob", "batch"}
    assert all(least <= threads <= most for threads in made.processors.values())
    assert made.slots is not None
    assert budget is None or max(made.total, made.slots) <= budget
    for name, threads in made.processors.items():
        assert sum(b.threads for b in made.bundles if b.operator == name) == threads
    assert all(0 <= share <= 1 for b in made.bundles for share in (b.cpu, b.memory))
    if made.feasible and planner.name == "mba":
        for name, profile, rate in (("blob", BLOB, blob), ("batch", FALLING, batch)):
            carried = sum(rate_per_s(profile, b.threads) for b in made.bundles if b.operator == name)
            assert carried >= rate * (1 - 1e-6)


@either
def test_source_and_sink_are_bundles_but_not_processors(planner: Lsa | Mba) -> None:
    _, made = planner.propose(None, situation(10.0, 10.0))
    assert made.bundles[0] == Bundle("source", 1, 0.1, 0.0)
    assert made.bundles[-1] == Bundle("sink", 1, 0.1, 0.0)
    assert set(made.processors) == {"blob", "batch"}


@either
def test_every_named_source_is_a_thread_and_a_missing_sink_is_one(planner: Lsa | Mba) -> None:
    two = Topology("two", PAIR.operators, (Edge("source:a", "blob"), Edge("source:b", "batch")))
    _, made = planner.propose(None, situation(10.0, 10.0, topology=two))
    assert {b.operator for b in made.bundles} == {"source:a", "source:b", "blob", "batch", "sink"}


def test_the_endpoints_share_is_a_parameter() -> None:
    _, made = Mba(endpoint_cpu=0.3, endpoint_memory=0.2).propose(None, situation(10.0, 10.0))
    assert made.bundles[0] == Bundle("source", 1, 0.3, 0.2)
    with pytest.raises(BadInput, match="endpoint_cpu"):
        Lsa(endpoint_cpu=1.5)
    with pytest.raises(BadInput, match="endpoint_memory"):
        Mba(endpoint_memory=-0.1)


@either
def test_an_operator_without_rows_keeps_one_idle_thread(planner: Lsa | Mba) -> None:
    _, made = planner.propose(None, situation(0.0, 0.0))
    assert made.processors == {"blob": 1, "batch": 1}
    assert (made.feasible, made.slots) == (True, 1)
    assert [b.cpu for b in made.bundles if b.operator == "blob"] == [0.0]


@either
def test_a_budget_too_small_is_not_feasible_and_says_what_the_whole_rate_needs(planner: Lsa | Mba) -> None:
    _, whole = planner.propose(None, situation(45.0, 45.0))
    _, made = planner.propose(None, situation(45.0, 45.0, Limits(budget=10)))
    assert not made.feasible
    assert made.total <= 10
    assert f"budget 10: the whole rate needs {whole.total} threads on {whole.slots} slots" in made.reasons[0]


@either
def test_a_budget_below_one_thread_each_keeps_one_each_and_says_so(planner: Lsa | Mba) -> None:
    _, made = planner.propose(None, situation(45.0, 45.0, Limits(budget=1)))
    assert made.processors == {"blob": 1, "batch": 1}
    assert not made.feasible
    assert "even the least of each operator is 2 threads" in made.reasons[0]


@either
def test_an_operator_at_its_most_is_not_feasible_and_says_what_it_carries(planner: Lsa | Mba) -> None:
    _, made = planner.propose(None, situation(45.0, 45.0, Limits(most_of={"blob": 4})))
    assert made.processors["blob"] <= 4
    assert not made.feasible
    assert "limits allow 4 threads" in made.reasons[0]


@either
def test_threads_raised_to_the_least_each_take_their_share_of_the_rate(planner: Lsa | Mba) -> None:
    _, made = planner.propose(None, situation(0.0, 30.0, Limits(least=3)))
    assert made.processors == {"blob": 3, "batch": 3}
    spare = [b for b in made.bundles if b.operator == "batch"][1:]
    assert [b.cpu for b in spare] == pytest.approx([0.58 * 10 / 60] * 2)


@either
def test_every_proposal_says_why_with_numbers(planner: Lsa | Mba) -> None:
    _, made = planner.propose(None, situation(45.0, 45.0))
    assert f"{made.slots} slots = ceil(max(CPU" in made.reasons[0]
    assert made.reasons[1].startswith("blob: 45 rows/s by ")


@either
@pytest.mark.parametrize("rate", [-1.0, math.inf, math.nan])
def test_a_rate_that_is_none_is_refused(planner: Lsa | Mba, rate: float) -> None:
    with pytest.raises(BadInput, match="arrival rate of 'blob'"):
        planner.propose(None, situation(rate, 1.0))


@either
def test_the_same_situation_gives_the_same_proposal(planner: Lsa | Mba) -> None:
    assert planner.start() is None
    assert planner.propose(None, situation(45.0, 45.0)) == planner.propose(None, situation(45.0, 45.0))


@either
def test_enormous_rates_end_at_the_limits(planner: Lsa | Mba) -> None:
    _, made = planner.propose(None, situation(1e300, 1e300, Limits(most=1000)))
    assert made.processors == {"blob": 1000, "batch": 1000}
    assert not made.feasible


def test_slots_are_the_larger_of_cpu_and_memory_rounded_up() -> None:
    assert slots_for([Bundle("a", 1, 0.6, 0.1), Bundle("b", 1, 0.6, 0.1)]) == 2
    assert slots_for([Bundle("a", 1, 0.1, 0.7), Bundle("b", 1, 0.1, 0.7)]) == 2
    assert slots_for([]) == 0


def test_ten_tenths_are_one_slot_in_spite_of_rounding() -> None:
    assert slots_for([Bundle("a", 1, 0.1, 0.0)] * 10) == 1


@given(st.floats(0.0, 1e6), st.floats(1e-3, 1e4), st.integers(0, 1000))
def test_whole_units_and_the_rest_make_up_the_rate(rate: float, unit: float, most: int) -> None:
    count, rest = whole_units(rate, unit, most)
    assert 0 <= count <= most
    # a rest below ROUNDING of a unit is none
    assert count * unit + rest == pytest.approx(rate, rel=1e-6, abs=2 * ROUNDING * unit)
    assert count == most or rest < unit * (1 + 1e-6)


def test_a_million_threads_of_an_operator_are_one_bundle_a_million_times() -> None:
    one = Topology("t", (Operator("a", 9.0),), (Edge("source", "a"),))
    bundles = bundles_of(one, {"a": 1_000_000})
    assert len(bundles) == 1_000_000
    assert bundles[0] is bundles[-1], "a million objects take seconds"
