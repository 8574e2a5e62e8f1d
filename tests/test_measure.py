from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.errors import BadInput
from sluicegate.measure import Smoothed, Smoothing


def after(values: list[float | None], smoothing: Smoothing) -> float | None:
    smoothed = Smoothed()
    for value in values:
        smoothed = smoothed.after([value], smoothing)
    return smoothed.values[0]


def test_exponential_smoothing_weighs_the_past_by_alpha() -> None:
    assert after([10.0, 20.0, 40.0], Smoothing(alpha=0.5)) == 27.5


def test_a_window_forgets_what_left_it() -> None:
    assert after([100.0, 1.0, 2.0, 3.0], Smoothing(window=3)) == 2.0


@pytest.mark.parametrize("smoothing", [Smoothing(alpha=0.5), Smoothing(window=3)])
def test_missing_stays_missing_until_something_is_measured(smoothing: Smoothing) -> None:
    assert after([None, None], smoothing) is None
    assert after([None, 5.0, None, None, None, None], smoothing) == 5.0


@given(
    st.lists(st.floats(0, 1e9), min_size=1, max_size=30), st.floats(0, 0.99), st.one_of(st.none(), st.integers(1, 9))
)
def test_smoothed_values_stay_within_what_was_measured(values: list[float], alpha: float, window: int | None) -> None:
    result = after([*values], Smoothing(alpha, window))
    assert result is not None
    assert min(values) * (1 - 1e-9) - 1e-9 <= result <= max(values) * (1 + 1e-9) + 1e-9


def test_smoothing_leaves_the_past_untouched() -> None:
    first = Smoothed().after([1.0], Smoothing())
    first.after([9.0], Smoothing())
    assert first.values == [1.0]


@pytest.mark.parametrize("bad", [(1.0, None), (-0.1, None), (0.5, 0)])
def test_parameters_out_of_range_are_refused(bad: tuple[float, int | None]) -> None:
    with pytest.raises(BadInput):
        Smoothing(bad[0], bad[1])
