from __future__ import annotations

import time

import pytest

from sluicegate.config.goal_text import duration_s, goal_from, number_from, pairs_from
from sluicegate.errors import BadInput


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
