"""What the soak compares: two levels of load in turns, and quarters of what was looked at."""

from __future__ import annotations

import pytest

from soak import LEVEL_S, Doubling, growth


def test_the_load_is_at_one_level_or_twice_that_and_changes_at_random_times() -> None:
    load = Doubling(1000.0, 3600.0, seed=1)
    assert {load(second / 3600.0) for second in range(3600)} == {500.0, 1000.0}
    lengths_s = [after - before for before, after in zip(load.changes, load.changes[1:], strict=False)]
    assert all(LEVEL_S[0] <= length <= LEVEL_S[1] for length in lengths_s)
    assert len(set(lengths_s)) == len(lengths_s)
    assert load.changes == Doubling(1000.0, 3600.0, seed=1).changes != Doubling(1000.0, 3600.0, seed=2).changes


def test_growth_is_the_last_quarter_over_the_second() -> None:
    assert growth([9.0, 9.0, 2.0, 2.0, 5.0, 5.0, 3.0, 3.0]) == pytest.approx(1.5)
    assert growth([4.0]) == 1.0
