from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sluicegate.place.best_fit import SLACK, OpenSlots

coarse = st.integers(0, 8).map(lambda eighths: eighths / 8)
share = st.one_of(coarse, st.floats(0.0, 1.0))
needs = st.tuples(share, share)


@given(st.lists(st.tuples(st.booleans(), needs), max_size=60))
def test_the_best_fit_is_the_one_a_look_at_every_slot_finds(moves: list[tuple[bool, tuple[float, float]]]) -> None:
    fast, slow = OpenSlots(), dict[int, tuple[float, float]]()
    for slot, (takes, (cpu, memory)) in enumerate(moves):
        if not takes:
            fast.put(slot, cpu, memory)
            slow[slot] = (cpu, memory)
            continue
        fits = [(c + m, c, m, s) for s, (c, m) in slow.items() if c >= cpu - SLACK and m >= memory - SLACK]
        expected = min(fits, default=None)
        assert fast.take(cpu, memory) == (None if expected is None else (expected[3], expected[1], expected[2]))
        if expected is not None:
            del slow[expected[3]]


def test_rows_split_and_vanish_without_losing_a_slot() -> None:
    room = OpenSlots()
    for slot in range(2000):
        room.put(slot, slot / 2000, (slot * 7 % 2000) / 2000)
    taken = [room.take(0.0, 0.0) for _ in range(2000)]
    assert {found[0] for found in taken if found} == set(range(2000))
    sums = [found[1] + found[2] for found in taken if found]
    assert sums == sorted(sums)
    assert room.take(0.0, 0.0) is None


def test_slots_with_the_same_cpu_left_are_told_apart_by_memory() -> None:
    room = OpenSlots()
    for slot in range(500):
        room.put(slot, 0.0, slot / 500)
    assert room.take(0.0, 0.25) == (125, 0.0, 0.25)


def test_rounding_below_nothing_left_counts_as_nothing_left() -> None:
    room = OpenSlots()
    room.put(1, -1e-12, 0.5)
    assert room.take(0.0, 0.5) == (1, 0.0, 0.5)
