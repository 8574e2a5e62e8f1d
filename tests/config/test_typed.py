from __future__ import annotations

import time

import pytest

from sluicegate.cli.app import run
from sluicegate.config.typed import duration_s, goal_from, number_from, pairs_from, policy_options
from sluicegate.control.settings import settings_for
from sluicegate.domain import Edge, Goal, Limits, Operator, Topology
from sluicegate.errors import BadInput
from sluicegate.measure import Smoothing
from sluicegate.policy.demand import situation_at
from sluicegate.spark.controller import Control


def test_several_goals_may_be_given_in_one_text_or_many() -> None:
    goal = goal_from(["mean=2s,p95=500ms", "cost=1.2"])
    assert (goal.mean_s, goal.p95_s, goal.cost_per_hour) == (2.0, 0.5, 1.2)


@pytest.mark.parametrize("text", ["", "2x", "-2s", "nan", "s", "1e999s", "2 s s"])
def test_what_is_no_duration_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(BadInput, match="500ms"):
        duration_s(text)


def test_a_comma_at_the_end_is_no_goal() -> None:
    assert goal_from(["p95=5s,"]) == goal_from(["p95=5s"])


@pytest.mark.parametrize(
    "text",
    ["mean", "median=2s", "on_time=2", "mean=0s", "relaxed=3s,mean=2s", "cost=cheap", "", "p95=1s,p95=2s"],
)
def test_what_is_no_goal_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        goal_from([text])


@pytest.mark.parametrize("text", ["nan", "inf", "-1", "x", ""])
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        number_from(text, "rate")


@pytest.mark.parametrize("text", ["a", "a=", "=3", "a=1,a=2", "a=1,,b=2"])
def test_what_is_no_list_of_pairs_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        pairs_from(text, "allocation")


def test_a_duration_of_many_digits_is_refused_at_once() -> None:
    began_s = time.process_time()
    with pytest.raises(BadInput):
        duration_s("9" * 100_000)  # quadratic, this takes minutes
    assert time.process_time() - began_s < 5.0
    assert duration_s(".5s") == 0.5


ONE = Topology("t", (Operator("a", 10.0),), (Edge("source", "a"),))


@pytest.mark.parametrize("text", ["t_ra_s", "=3", "t_ra_s=", ""])
def test_what_is_no_option_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="give NAME=VALUE"):
        policy_options([text])


def test_the_configuration_of_drs_reaches_rules_smoothing_sampling_and_looks() -> None:
    made = settings_for("drs", ONE, options=policy_options(["t_ra_s=840", "w=6", "n_m=3"]))
    assert (made.rules.cooldown_s, made.smoothing, made.every_nth_batch) == (840, Smoothing(0.5, 6), 3)
    assert settings_for("drs", ONE, options={"alpha": 0.9}).smoothing == Smoothing(0.9)
    assert Control("drs", options=("t_m_s=7",)).timing.interval_s == 7.0
    assert settings_for("drs", ONE).rules.cooldown_s == 60.0


def test_t_max_and_k_max_go_before_goal_and_budget() -> None:
    situation = situation_at(ONE, 25.0, Goal(mean_s=5.0), Limits(budget=50))
    by_goal, tighter, bounded = (
        settings_for("drs", ONE, options=options).policy.propose(None, situation)[1]
        for options in ({}, {"t_max_s": 0.11}, {"t_max_s": 0.11, "k_max": 4})
    )
    assert by_goal.total < tighter.total
    assert (bounded.total, bounded.feasible) == (4, False)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ("alpha=0.5,w=3", "alpha and w: give one of them"),
        ("k_max=0", "k_max is 0"),
        ("t_min_s=3,t_max_s=2", "t_min_s must be below t_max_s"),
        ("t_ra_s=soon", "option t_ra_s of policy 'drs' is 'soon': give a number"),
        ("beta=1", "policy 'drs' has no option 'beta': it takes alpha, "),
    ],
)
def test_options_that_cannot_be_are_refused_before_anything_starts(options: str, why: str) -> None:
    with pytest.raises(BadInput, match=why):
        Control("drs", options=(options,))


def test_policies_shows_the_options_of_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["policies", "drs"]) == 0
    assert "t_ra_s" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["k_max=1e400", "alpha=nan", "alpha=-inf", f"k_max={'9' * 30}"])
def test_a_number_that_nothing_can_compute_with_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="give a finite number"):
        policy_options([text])


def test_never_is_spelt_inf() -> None:
    assert policy_options(["t_ra_s=inf"]) == {"t_ra_s": float("inf")}
