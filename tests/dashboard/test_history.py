from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.dashboard.sample_run import OPERATORS

from sluicegate.dashboard.history import COLUMNS, MOST_BYTES, Chunk, History, bucket_starts, extremes, spread_times


def tick(at_s: float, k: int = 1, **told: Any) -> dict[str, Any]:
    operators = {name: {"utilisation": 0.5, "queue_rows": 7.0} for name in OPERATORS}
    return {"at_s": at_s, "running": dict.fromkeys(OPERATORS, k), "operators": operators, **told}


def history(*ticks: dict[str, Any], most_bytes: int = 10**7) -> History:
    kept = History(OPERATORS, most_bytes)
    for one in ticks:
        kept.add(one)
    return kept


def test_a_tick_that_is_read_twice_is_kept_once() -> None:
    kept = history(tick(1.0), tick(2.0))
    assert not kept.add(tick(2.0))
    assert not kept.add(tick(1.0))
    assert len(kept) == 2


def test_what_was_not_measured_is_missing_and_not_zero() -> None:
    window = history(tick(1.0, sojourn=None, arrivals_per_s=None)).between(0, 9)
    assert np.isnan(window.column("mean_s")).all()
    assert np.isnan(window.column("arrivals_per_s")).all()
    assert window.column("processors").tolist() == [3.0]


def test_a_tick_of_nonsense_is_taken_for_what_it_tells() -> None:
    kept = history({"at_s": 1.0, "running": {"rank": None}, "operators": [], "sojourn": "?", "nodes": [7]})
    assert kept.add({"at_s": 2.0})
    assert not kept.add({"at_s": "later"})
    assert np.isnan(kept.between(0, 9).column("mean_s")).all()


def test_a_window_holds_its_ticks_and_no_others_across_chunks() -> None:
    kept = history(*(tick(float(n), k=n % 5) for n in range(3000)))
    window = kept.between(1000.0, 2500.0)
    assert window.at_s.tolist() == [float(n) for n in range(1000, 2501)]
    places = np.array([0, 24, 1500])
    assert window.processors_at(places)[:, 0].tolist() == [0, 4, 0]
    assert window.of_operator("rank", "processors").tolist() == [float(n % 5) for n in range(1000, 2501)]


def test_the_oldest_go_when_there_is_no_more_room() -> None:
    kept = history(*(tick(float(n)) for n in range(5000)), most_bytes=1)
    assert len(kept) <= 2048
    assert kept.last_s == 4999.0
    assert kept.first_s == 5000.0 - len(kept)


def test_there_is_room_for_a_day_of_a_hundred_operators_at_two_seconds() -> None:
    chunk = Chunk(100)
    assert chunk.bytes * (24 * 3600 / 2 / chunk.at_s.size) <= MOST_BYTES


def test_an_empty_window_has_empty_columns() -> None:
    window = history().between(0, 9)
    assert all(len(window.column(name)) == 0 for name in COLUMNS)
    assert window.processors_at(np.zeros(0, np.intp)).shape == (0, 3)


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
