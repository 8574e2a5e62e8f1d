"""What keeps the user's queries from our slowness and the driver's log from repetitions."""

from __future__ import annotations

import pytest
from tests.attach.java_program import told_by

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def called(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    return told_by("GuardCalls", tmp_path_factory.mktemp("classes"))


def test_what_takes_a_third_of_short_batches_is_suspended(called: dict[str, list[str]]) -> None:
    assert called["slow"] == ["false"]


def test_what_takes_a_hundredth_of_the_batches_of_an_overloaded_machine_is_not(called: dict[str, list[str]]) -> None:
    assert called["overloaded"] == ["true"]


def test_what_takes_a_second_of_first_batches_which_load_classes_is_not(called: dict[str, list[str]]) -> None:
    assert called["cold"] == ["true"]


def test_a_lever_that_fails_for_one_query_stays_with_the_others(called: dict[str, list[str]]) -> None:
    assert (called["one"], called["other"], called["none"]) == (["false"], ["true"], ["false"])
    told = "tasks of one given up, it goes on without and others with them: "
    assert " ".join(called["told"]) == f"{told}a plan of it failed"


def test_failures_that_fewer_tasks_may_explain_are_told_from_those_of_the_user(called: dict[str, list[str]]) -> None:
    assert " ".join(called["barrier"]) == "SparkException: [SPARK-24821]: a chain"
    assert " ".join(called["class"]) == "java.lang.ClassNotFoundException: sluicegate.attach.OneByOne"
    assert called["theirs"] == ["null"]


def test_a_trouble_is_one_line_whatever_its_text_is_each_time(called: dict[str, list[str]]) -> None:
    assert called["troubled"] == ["2"]
