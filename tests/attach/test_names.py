"""The name of a query in the record, when its start and the end of another one of that name are noted late."""

from __future__ import annotations

import pytest
from tests.attach.java_program import told_by

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    return told_by("QueryNames", tmp_path_factory.mktemp("classes"))


def test_a_query_that_starts_anew_keeps_its_name_though_the_end_of_the_last_is_not_noted(
    named: dict[str, list[str]],
) -> None:
    assert named["anew"] == ["clicks", "clicks", "1"]


def test_a_query_beside_another_of_its_name_keeps_its_own_name_when_the_other_ends(named: dict[str, list[str]]) -> None:
    assert named["both"] == ["clicks-22222222", "clicks-22222222", "2"]


def test_of_a_query_that_starts_with_a_new_id_each_time_the_last_two_are_known(named: dict[str, list[str]]) -> None:
    assert named["again"] == ["2", "1"]
