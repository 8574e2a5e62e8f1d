from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.spark.kafka.curve import OffsetCurve

STEPS = st.lists(st.tuples(st.floats(0.1, 5.0), st.integers(0, 500)), min_size=1, max_size=60)


def curve_of(steps: list[tuple[float, int]]) -> tuple[OffsetCurve, float, int]:
    curve, at_s, offset = OffsetCurve(), 100.0, 0
    for took_s, rows in steps:
        at_s, offset = at_s + took_s, offset + rows
        curve.add(at_s, {"a": offset})
    return curve, at_s, offset


@given(STEPS, st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_every_row_of_a_range_is_born_once_and_not_in_the_future(
    steps: list[tuple[float, int]], low: float, high: float
) -> None:
    curve, at_s, offset = curve_of(steps)
    first, end = sorted((int(low * offset), int(high * offset) + 10))
    births = curve.births({"a": (first, end)}, at_s + 1.0)
    assert births.weight == pytest.approx(end - first)
    assert all(100.0 <= born_s <= at_s + 1.0 for born_s, _ in births.points)


def test_rows_come_when_the_offset_rose_not_while_it_stood_still() -> None:
    curve = OffsetCurve()
    for at_s, offset in [(0.0, 0), (1.0, 0), (50.0, 0), (51.0, 100), (80.0, 100), (81.0, 200)]:
        curve.add(at_s, {"a": offset})
    assert curve.births({"a": (0, 100)}, 90.0).mean_s == pytest.approx(50.5)
    assert curve.births({"a": (100, 200)}, 90.0).mean_s == pytest.approx(80.5)


def test_what_was_there_before_the_first_sample_is_as_old_as_that() -> None:
    curve = OffsetCurve()
    curve.add(10.0, {"a": 1000})
    assert curve.births({"a": (0, 1000)}, 20.0).points == ((10.0, 1000.0),)


def test_a_long_curve_stays_small_and_keeps_its_ends() -> None:
    curve = OffsetCurve()
    for second in range(20_000):
        curve.add(float(second), {"a": 10 * second})
    line = curve.lines["a"]
    assert len(line.offset) <= 1024
    assert line.at_s[0] == 0.0
    assert line.at_s[-1] == 19_999.0
    assert curve.births({"a": (100, 200)}, 2e4).mean_s == pytest.approx(15.0, abs=1.0)


def test_a_topic_that_was_made_anew_begins_anew() -> None:
    curve, _, _ = curve_of([(1.0, 500)])
    curve.add(200.0, {"a": 5})
    curve.add(201.0, {"a": 15})
    assert curve.births({"a": (5, 15)}, 202.0).mean_s == pytest.approx(200.5)
