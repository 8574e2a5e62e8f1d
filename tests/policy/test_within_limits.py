"""What may be used, and what is said about every cut."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from sluicegate.domain import Edge, Limits, Observation, Operator, Situation, Topology
from sluicegate.policy.within_limits import proposal_within, spread_within, within_limits

THREE = Topology(
    "t",
    (Operator("a", 10.0), Operator("b", 5.0), Operator("c", 20.0)),
    (Edge("source", "a"), Edge("a", "b"), Edge("b", "c")),
)


def _situation(limits: Limits) -> Situation:
    return Situation(0.0, THREE, Observation(0.0, 10.0, {}), 10.0, {}, limits=limits)


def test_what_fits_is_left_alone() -> None:
    assert within_limits({"a": 2, "b": 3, "c": 1}, THREE, Limits(budget=6)) == ({"a": 2, "b": 3, "c": 1}, (), True)


def test_an_operator_below_the_least_is_raised_and_that_is_feasible() -> None:
    assert within_limits({"a": 0, "b": -5}, THREE, Limits(least=2)) == ({"a": 2, "b": 2, "c": 2}, (), True)


def test_an_operator_above_its_most_is_cut_and_named() -> None:
    kept, why, feasible = within_limits({"a": 9, "b": 9, "c": 1}, THREE, Limits(most=8, most_of={"b": 4}))
    assert kept == {"a": 8, "b": 4, "c": 1}
    assert why == ("a: 9 wanted, 8 allowed", "b: 9 wanted, 4 allowed")
    assert not feasible


def test_the_most_wins_where_least_and_most_contradict_each_other() -> None:
    assert within_limits({}, THREE, Limits(least=3, most_of={"a": 2}))[0] == {"a": 2, "b": 3, "c": 3}


def test_a_cut_to_the_budget_gives_no_operator_more_than_it_wanted() -> None:
    kept, why, feasible = within_limits({"a": 8, "b": 2, "c": 8}, THREE, Limits(budget=9))
    assert kept == {"a": 5, "b": 2, "c": 2}  # carries 50, 10, 40
    assert why == ("18 processors wanted, the budget is 9: cut back",)
    assert not feasible


def test_a_budget_below_the_leasts_keeps_the_leasts_and_says_so() -> None:
    kept, why, feasible = within_limits({"a": 5, "b": 5, "c": 5}, THREE, Limits(budget=2))
    assert kept == {"a": 1, "b": 1, "c": 1}
    assert why == ("the budget is 2, below the 3 processors the operators need at least: 3 kept",)
    assert not feasible


def test_a_proposal_carries_the_planners_reasons_and_then_the_cuts() -> None:
    proposal = proposal_within({"a": 9, "b": 1, "c": 1}, ("because",), _situation(Limits(most=4)))
    assert proposal.reasons == ("because", "a: 9 wanted, 4 allowed")
    assert not proposal.feasible


def test_a_planner_that_found_its_plan_infeasible_is_not_overruled() -> None:
    assert not proposal_within({"a": 1, "b": 1, "c": 1}, (), _situation(Limits()), feasible=False).feasible


def test_a_total_beyond_the_budget_is_spread_up_to_the_budget() -> None:
    proposal = spread_within(10**9, ("many",), _situation(Limits(budget=7)))
    assert proposal.processors == {"a": 2, "b": 4, "c": 1}
    assert proposal.reasons == ("many", "1000000000 processors wanted, 7 allowed")
    assert not proposal.feasible


def test_a_total_beyond_every_operators_most_is_spread_up_to_their_sum() -> None:
    proposal = spread_within(100, (), _situation(Limits(most=5)))
    assert proposal.processors == {"a": 5, "b": 5, "c": 5}
    assert not proposal.feasible


@settings(max_examples=100, deadline=None)
@given(
    st.dictionaries(st.sampled_from(["a", "b", "c"]), st.integers(-10, 10**9)),
    st.integers(1, 5),
    st.integers(5, 40),
    st.dictionaries(st.sampled_from(["a", "b", "c"]), st.integers(1, 10)),
    st.none() | st.integers(1, 60),
)
def test_the_limits_always_hold(
    wanted: dict[str, int], least: int, most: int, most_of: dict[str, int], budget: int | None
) -> None:
    limits = Limits(budget=budget, least=least, most=most, most_of=most_of)
    kept, why, feasible = within_limits(wanted, THREE, limits)
    floors = {name: min(least, limits.most_for(name)) for name in THREE.names}
    assert all(floors[name] <= kept[name] <= limits.most_for(name) for name in THREE.names)
    assert budget is None or sum(kept.values()) <= max(budget, sum(floors.values()))
    assert feasible == (not why)
    uncut = all(kept[name] >= wanted.get(name, 0) for name in THREE.names)
    assert feasible == (uncut and (budget is None or sum(kept.values()) <= budget))
