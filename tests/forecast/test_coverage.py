"""Achieved coverage of announced bounds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.errors import BadInput
from sluicegate.forecast.coverage import Coverage


@given(st.lists(st.booleans(), min_size=1, max_size=60), st.integers(1, 20))
def test_achieved_is_the_share_of_bounds_that_held_in_the_window(held: list[bool], window: int) -> None:
    seen = Coverage(window)
    for hit in held:
        seen = seen.record(10.0, 9.0 if hit else 11.0)
    recent = held[-window:]
    assert seen.achieved == pytest.approx(sum(recent) / len(recent))
    assert seen.number == len(recent)


def test_nothing_was_achieved_before_the_first_bound() -> None:
    assert Coverage().achieved is None


def test_a_bound_that_is_met_exactly_held() -> None:
    assert Coverage().record(10.0, 10.0).achieved == 1.0


def test_recording_leaves_the_value_as_it_was() -> None:
    first = Coverage().record(10.0, 9.0)
    first.record(10.0, 11.0)
    assert first.achieved == 1.0


def test_a_window_of_nothing_is_refused() -> None:
    with pytest.raises(BadInput, match="at least 1"):
        Coverage(0)
