from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from sluicegate.domain import Bundle, Edge, Operator, Placement, Topology, Vm
from sluicegate.place.placer import DoesNotFit
from sluicegate.place.sam import Sam

NAMES = ("B", "O", "Y", "G")
FOUR = Topology(
    "four",
    tuple(Operator(name, 1.0) for name in NAMES),
    (Edge("source", "B"), Edge("B", "O"), Edge("O", "Y"), Edge("Y", "G")),
)
THREE_BY_TWO = [Vm(f"vm-{number}", 2) for number in (1, 2, 3)]
share = st.integers(0, 16).map(lambda sixteenths: sixteenths / 16)
partials = st.builds(Bundle, st.sampled_from(NAMES), st.integers(1, 9), share, share)
fulls = st.sampled_from(NAMES).map(lambda name: Bundle(name, 10, 1.0, 1.0, full=True))
bundle_lists = st.lists(st.one_of(partials, partials, fulls), max_size=25)


def full(name: str, threads: int) -> Bundle:
    return Bundle(name, threads, 1.0, 1.0, full=True)


def placed(bundles: list[Bundle], fleet: list[Vm]) -> Placement:
    found = Sam().place(FOUR, bundles, fleet)
    assert isinstance(found, Placement), found
    return found


def slots_needed(bundles: list[Bundle]) -> int:
    """Best fit with a look at every slot, sweep after sweep."""
    queues = {name: [b for b in bundles if b.operator == name] for name in NAMES}
    shelves: list[list[float] | None] = []
    while any(queues.values()):
        for queue in queues.values():
            if not queue:
                continue
            bundle = queue.pop(0)
            if bundle.full:
                shelves.append(None)
                continue
            fits = [s for s in shelves if s and s[0] >= bundle.cpu and s[1] >= bundle.memory]
            if fits:
                best = min(fits, key=lambda s: (sum(s), s))
            else:
                best = [1.0, 1.0]
                shelves.append(best)
            best[0] -= bundle.cpu
            best[1] -= bundle.memory
    return len(shelves)


def test_the_papers_worked_mapping() -> None:
    bundles = [full("B", 2), full("B", 2), Bundle("B", 1, 0.3, 0.3)]
    bundles += [full("O", 3), Bundle("O", 1, 0.3, 0.3), full("Y", 3), full("G", 4), Bundle("G", 1, 0.3, 0.3)]
    found = placed(bundles, THREE_BY_TWO)
    assert list(found.slots.values()) == [
        (("B", 2),),
        (("O", 3),),
        (("Y", 3),),
        (("G", 4),),
        (("B", 2),),
        (("O", 1), ("G", 1), ("B", 1)),
    ]


@settings(max_examples=200)
@given(bundle_lists, st.integers(1, 4), st.integers(0, 3))
def test_bundles_fit_exactly_on_the_slots_that_best_fit_needs(bundles: list[Bundle], size: int, spare: int) -> None:
    needed = slots_needed(bundles)
    assert Sam().fewest_slots(FOUR, bundles) == needed
    fleet = [Vm("rest", (needed + spare) % size), *(Vm(f"vm-{n}", size) for n in range((needed + spare) // size))]
    assert isinstance(Sam().place(FOUR, bundles, fleet), Placement)
    if needed:
        assert isinstance(Sam().place(FOUR, bundles, [Vm("small", needed - 1)]), DoesNotFit)


@settings(max_examples=200)
@given(bundle_lists)
def test_every_thread_is_placed_and_full_bundles_are_alone(bundles: list[Bundle]) -> None:
    found = placed(bundles, [Vm("vm", 30)])
    assert sum(n for groups in found.slots.values() for _, n in groups) == sum(b.threads for b in bundles)
    for name in NAMES:
        alone = [dict(groups) for groups in found.slots.values() if dict(groups).get(name) == 10 and len(groups) == 1]
        assert len(alone) >= sum(b.full for b in bundles if b.operator == name)


@given(st.lists(st.tuples(share, share), min_size=4, max_size=4))
def test_no_slot_is_overfull(needs: list[tuple[float, float]]) -> None:
    need = dict(zip(NAMES, needs, strict=True))
    found = placed([Bundle(name, 1, *need[name]) for name in NAMES], THREE_BY_TWO)
    for groups in found.slots.values():
        assert sum(need[name][0] for name, _ in groups) <= 1
        assert sum(need[name][1] for name, _ in groups) <= 1


def test_at_most_one_slot_per_task_is_mixed() -> None:
    bundles = [b for name in NAMES for b in (full(name, 5), full(name, 5), Bundle(name, 2, 0.2, 0.2))]
    found = placed(bundles, [Vm("vm", 9)])
    assert sum(len(groups) > 1 for groups in found.slots.values()) <= len(NAMES)
    assert [len(groups) for groups in found.slots.values()] == [1] * 8 + [4]


def test_erratum_a_rest_of_one_thread_shares_a_slot_though_the_peak_is_one_thread() -> None:
    rests = [Bundle(name, 1, 0.25, 0.1) for name in NAMES]
    assert Sam().fewest_slots(FOUR, rests) == 1


def test_erratum_one_bundle_of_a_task_is_mapped_per_sweep() -> None:
    found = placed([full("B", 2), full("B", 2), full("O", 3)], THREE_BY_TWO)
    assert list(found.slots.values())[:3] == [(("B", 2),), (("O", 3),), (("B", 2),)]


def test_best_fit_takes_the_fullest_slot_that_has_room() -> None:
    bundles = [Bundle("B", 1, 0.5, 0.5), Bundle("O", 2, 0.75, 0.75), Bundle("Y", 3, 0.25, 0.25)]
    assert list(placed(bundles, [Vm("vm", 2)]).slots.values()) == [(("B", 1),), (("O", 2), ("Y", 3))]


def test_room_in_one_dimension_only_is_no_room() -> None:
    bundles = [Bundle("B", 1, 0.9, 0.1), Bundle("O", 1, 0.2, 0.1)]
    assert Sam().fewest_slots(FOUR, bundles) == 2


def test_an_empty_slot_is_sought_in_the_vm_mapped_last_and_then_in_its_neighbour() -> None:
    bundles = [Bundle("B", 1, 0.6, 0.1), full("O", 5), full("Y", 5), Bundle("G", 1, 0.3, 0.1), full("G", 7)]
    found = placed(bundles, THREE_BY_TWO)
    # G's part joins B on the first VM, which is full by then; so G's full bundle takes the neighbour's next slot
    assert found.threads("G") == {"vm-1/1": 1, "vm-2/2": 7}


def test_the_search_for_an_empty_slot_goes_round_the_fleet() -> None:
    bundles = [Bundle("B", 1, 0.1, 0.1), full("O", 5), full("Y", 5), full("G", 5)]
    fleet = [Vm("none", 0), *THREE_BY_TWO[:2], Vm("nil", 0)]
    assert len([groups for groups in placed(bundles, fleet).slots.values() if groups]) == 4


def test_a_refusal_names_the_bundle_and_the_slots_needed() -> None:
    found = Sam().place(FOUR, [full("B", 2), full("O", 3)], [Vm("vm", 1)])
    assert isinstance(found, DoesNotFit)
    assert found.why.startswith("O: a full bundle of 3 threads needs 100.0% CPU")
    assert "none of 1 slots has that left, the mapping needs 2 slots" in found.why


def test_a_bundle_larger_than_a_slot_fits_nowhere() -> None:
    huge = [Bundle("B", 2, 1.2, 0.1)]
    assert Sam().fewest_slots(FOUR, huge) is None
    found = Sam().place(FOUR, huge, THREE_BY_TWO)
    assert isinstance(found, DoesNotFit)
    assert "more than a slot has" in found.why


def test_tenths_that_fill_a_slot_fit_in_spite_of_rounding() -> None:
    assert Sam().fewest_slots(FOUR, [Bundle("B", 1, 0.1, 0.0)] * 10) == 1


def test_nothing_to_place_is_placed() -> None:
    assert placed([], []).slots == {}
    assert Sam().fewest_slots(FOUR, []) == 0
