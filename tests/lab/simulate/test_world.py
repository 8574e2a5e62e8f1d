from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.errors import BadInput
from sluicegate.lab.simulate import OperatorState


@given(st.floats(1, 1e9), st.integers(1, 64), st.integers(1, 63))
def test_more_instances_move_state_faster(size_bytes: float, have: int, want: int) -> None:
    state = OperatorState(size_bytes)
    if have not in (want, want + 1):
        assert state.move_s(have, want + 1) < state.move_s(have, want)


@given(st.floats(0.1, 100), st.floats(0, 100))
def test_repair_grows_with_the_backup_interval(interval_s: float, arrivals_per_s: float) -> None:
    short, long = (OperatorState(1e6, backup_interval_s=s) for s in (interval_s, 2 * interval_s))
    assert short.repair_s(arrivals_per_s, 50.0) <= long.repair_s(arrivals_per_s, 50.0)


def test_state_of_a_negative_size_is_refused() -> None:
    with pytest.raises(BadInput):
        OperatorState(-1.0)
