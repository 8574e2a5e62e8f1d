from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sluicegate.domain import Bundle, Edge, Operator, Placement, Topology, Vm
from sluicegate.place.dsm import Dsm
from sluicegate.place.placer import DoesNotFit

NAMES = ("B", "O", "Y", "G")
FOUR = Topology(
    "four",
    tuple(Operator(name, 1.0) for name in NAMES),
    (Edge("source", "B"), Edge("B", "O"), Edge("O", "Y"), Edge("Y", "G")),
)
THREE_BY_TWO = [Vm(f"vm-{number}", 2) for number in (1, 2, 3)]


def numbers(placed: Placement | DoesNotFit, operator: str) -> list[int]:
    """The slots of an operator as numbers from 1, in the fleet's order."""
    assert isinstance(placed, Placement)
    order = list(placed.slots)
    return [order.index(slot) + 1 for slot in placed.threads(operator)]


def test_the_papers_worked_mapping() -> None:
    counts = {"B": 5, "O": 4, "Y": 3, "G": 5}
    placed = Dsm().place(FOUR, [Bundle(name, n, 0.5, 0.5) for name, n in counts.items()], THREE_BY_TWO)
    assert numbers(placed, "B") == [1, 2, 3, 4, 5]
    assert sorted(numbers(placed, "O")) == [1, 2, 3, 6]
    assert numbers(placed, "Y") == [4, 5, 6]
    assert numbers(placed, "G") == [1, 2, 3, 4, 5]


@given(st.lists(st.integers(1, 40), min_size=4, max_size=4), st.lists(st.integers(1, 4), min_size=1, max_size=5))
def test_it_places_thread_by_thread_in_turn(counts: list[int], sizes: list[int]) -> None:
    fleet = [Vm(f"vm-{number}", size) for number, size in enumerate(sizes)]
    placed = Dsm().place(FOUR, [Bundle(n, c, 0.1, 0.1) for n, c in zip(NAMES, counts, strict=True)], fleet)
    assert isinstance(placed, Placement)
    expected: dict[str, dict[str, int]] = {slot: {} for slot in placed.slots}
    order = list(placed.slots)
    threads = [name for name, count in zip(NAMES, counts, strict=True) for _ in range(count)]
    for turn, name in enumerate(threads):
        on = expected[order[turn % len(order)]]
        on[name] = on.get(name, 0) + 1
    assert {slot: dict(groups) for slot, groups in placed.slots.items()} == expected


def test_what_threads_need_does_not_matter() -> None:
    assert isinstance(Dsm().place(FOUR, [Bundle("B", 1, 9.0, 9.0)], THREE_BY_TWO), Placement)


def test_threads_without_a_slot_do_not_fit() -> None:
    assert Dsm().place(FOUR, [Bundle("B", 2, 0.1, 0.1)], []) == DoesNotFit("2 threads and no slot: rent at least 1")


def test_nothing_to_place_is_placed_on_nothing() -> None:
    placed = Dsm().place(FOUR, [], [])
    assert isinstance(placed, Placement)
    assert placed.slots == {}
