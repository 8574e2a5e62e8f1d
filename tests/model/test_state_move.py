from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.errors import BadInput
from sluicegate.model.state_move import Holder, Replay, kept_for_s, repair_s, repartition_s

MBIT_100 = 12.5e6
speeds = st.floats(1e3, 1e10)


@given(st.floats(0, 1e9), st.lists(st.builds(Holder, speeds, speeds), min_size=1, max_size=5))
def test_state_moves_faster_to_more_instances(state_bytes: float, holders: list[Holder]) -> None:
    times = [repartition_s(state_bytes, k, holders) for k in (1, 2, 5, 20)]
    assert all(slower >= faster for slower, faster in pairwise(times))


def test_42_megabytes_over_100_mbit_links_come_to_the_papers_floor_at_15_instances() -> None:
    holders = [Holder(1e9, MBIT_100)] * 3
    assert repartition_s(42e6, 15, holders) == pytest.approx(0.225, rel=0.02)
    assert repartition_s(42e6, 3, holders) > 0.75


def test_erratum_eq_25_takes_the_slowest_holder_of_an_old_instances_backup() -> None:
    fast, slow = Holder(1e9, 1e9), Holder(1e9, 1e6)
    # Three old instances, two new ones: the maximum is over the three holders.
    assert repartition_s(8e6, 2, [fast, fast, slow]) == pytest.approx(4e6 / 1e9 + 4e6 / 1e6)


def test_no_old_instance_means_no_time() -> None:
    assert repartition_s(8e6, 2, []) == 0.0


def test_an_instance_35_percent_busy_is_repaired_in_the_papers_time() -> None:
    assert repair_s(2.0, [Replay(35.0, 1e4, 100.0)], most_rows=1e6) == pytest.approx(0.7)


def test_erratum_eq_26_takes_the_replay_rate_of_one_instance() -> None:
    one, other = Replay(10.0, 100.0, 50.0), Replay(40.0, 100.0, 50.0)
    assert repair_s(1.0, [one, other], most_rows=1e6) == pytest.approx(40.0 / 50.0)


@given(st.floats(0.1, 100), st.floats(0.1, 100))
def test_a_longer_interval_never_repairs_faster(one_s: float, other_s: float) -> None:
    failed = [Replay(30.0, 100.0, 50.0)]
    short, long = sorted((one_s, other_s))
    assert repair_s(short, failed, most_rows=500) <= repair_s(long, failed, most_rows=500)


def test_erratum_an_infinite_interval_keeps_a_bounded_output() -> None:
    assert kept_for_s(math.inf, 50.0, most_rows=1000) == 20.0
    assert repair_s(math.inf, [Replay(50.0, 200.0, 100.0)], most_rows=1000) == pytest.approx(10.0)


def test_nothing_to_replay_takes_no_time_even_without_backups() -> None:
    assert repair_s(math.inf, [Replay(0.0, 1.0, 1.0)], most_rows=10) == 0.0
    assert repair_s(math.inf, [], most_rows=10) == 0.0


def test_bad_figures_are_refused() -> None:
    with pytest.raises(BadInput, match="bandwidth_bytes_per_s"):
        Holder(1.0, 0.0)
    with pytest.raises(BadInput, match="new instances"):
        repartition_s(1.0, 0, [])
    with pytest.raises(BadInput, match="backup interval"):
        kept_for_s(0.0, 1.0, 1.0)
