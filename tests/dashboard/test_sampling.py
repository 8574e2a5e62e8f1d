from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.dashboard.sampling import bucket_starts, extremes, spread_times

series = st.lists(st.one_of(st.none(), st.floats(-1e6, 1e6)), min_size=1, max_size=300)


@given(series, st.integers(1, 40))
def test_the_highest_and_the_lowest_are_never_lost(values: list[float | None], buckets: int) -> None:
    told = np.array([np.nan if value is None else value for value in values])
    kept = told[extremes(told, bucket_starts(np.arange(len(told), dtype=float), buckets))]
    known = [value for value in values if value is not None]
    if known:
        assert np.nanmax(kept) == max(known)
        assert np.nanmin(kept) == min(known)
    else:
        assert np.isnan(kept).all()


@given(series, st.integers(1, 40))
def test_there_are_never_more_points_than_asked_for(values: list[float | None], buckets: int) -> None:
    told = np.array([np.nan if value is None else value for value in values])
    assert len(extremes(told, bucket_starts(np.arange(len(told), dtype=float), buckets))) <= 2 * buckets


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=200, unique=True), st.integers(1, 40))
def test_times_only_go_forward_and_stay_in_the_window(times: list[float], buckets: int) -> None:
    at_s = np.sort(np.array(times))
    spread = spread_times(at_s, bucket_starts(at_s, buckets))
    assert (np.diff(spread) >= 0).all()
    assert spread[0] >= at_s[0]
    assert spread[-1] <= at_s[-1]


def test_extremes_come_in_the_order_they_happened() -> None:
    falling = np.array([9.0, 5.0, 1.0])
    assert falling[extremes(falling, np.array([0]))].tolist() == [9.0, 1.0]


def test_a_pause_in_a_run_makes_no_points() -> None:
    at_s = np.array([0.0, 1.0, 99.0, 100.0])
    assert len(bucket_starts(at_s, 50)) < 5
