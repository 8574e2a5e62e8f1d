"""What keeps the user's queries from our slowness and the driver's log from repetitions."""

from __future__ import annotations

import base64

import pytest
from tests.attach.java_program import told_by

from sluicegate.runlog.plain_words import plain

pytestmark = pytest.mark.slow

REASONS = (
    "visits: load: 281 rows/s, the forecast of the next 4 s (now 281 rows/s)",
    "load: 5 rows/s as it is now (no forecast)",
    "hashes: 1 processors: p95 0.3561 s (goal 3.783 s); 10% in reserve, model bias 1.19",
    "3 processors: p95 2.4 s (goal 1.9 s); model bias 1.00; the goal is out of reach within the limits",
    "hashes: 1 processors carry 332 rows/s at 6,259 rows/s each (5% busy), E[T] 0.267 s",
    "a: 11 processors carry 20 rows/s, E[T] inf s; b: 1.1 processors, E[T] 1.2e+06 s, $1 \\1",
)


def encoded(text: str) -> str:
    """As one word of ASCII, for the command line."""
    return base64.b64encode(text.encode()).decode()


@pytest.fixture(scope="module")
def called(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    return told_by("GuardCalls", tmp_path_factory.mktemp("classes"), *map(encoded, REASONS))


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


def test_a_row_of_300_kb_in_an_error_takes_no_minutes_to_redact(called: dict[str, list[str]]) -> None:
    assert called["redacted"] == ["true"]


def test_secrets_after_names_and_arrows_in_addresses_and_of_bearers_are_hidden(called: dict[str, list[str]]) -> None:
    assert called["secret"] == ["false"]


def test_the_tab_of_sparks_ui_puts_reasons_into_the_same_words_as_the_command_line(
    called: dict[str, list[str]],
) -> None:
    for reason in REASONS:
        assert called[encoded(reason)] == [encoded(plain(reason))]
