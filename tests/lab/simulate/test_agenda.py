from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from sluicegate.lab.simulate.agenda import due, empty_agenda, schedule, times


@given(
    st.integers(1, 40),
    st.lists(st.tuples(st.integers(0, 39), st.one_of(st.floats(0, 100), st.just(math.inf))), max_size=60),
)
def test_the_root_is_always_the_earliest_event(slots: int, changes: list[tuple[int, float]]) -> None:
    agenda, expected = empty_agenda(slots), dict.fromkeys(range(slots), math.inf)
    for slot, time in changes:
        if slot < slots:
            schedule(agenda, slot, time)
            expected[slot] = time
        assert agenda[1]["time"] == min(expected.values())
        if agenda[1]["time"] < math.inf:
            assert expected[int(agenda[1]["slot"])] == agenda[1]["time"]
    assert [due(agenda, slot) for slot in range(slots)] == list(expected.values())
    assert times(agenda)[:slots].tolist() == list(expected.values())
