from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluicegate.domain import Bundle, Edge, Operator, Placement, Topology, Vm
from sluicegate.errors import Infeasible
from sluicegate.place.dsm import Dsm
from sluicegate.place.es_stream import EsStreamPlacer
from sluicegate.place.extra_slots import place_with_extra_slots
from sluicegate.place.placer import DoesNotFit, Placer
from sluicegate.place.rsm import Rsm
from sluicegate.place.sam import Sam
from sluicegate.policy.allotment import slots_for

ONE = Topology("one", (Operator("a", 1.0), Operator("b", 1.0)), (Edge("source", "a"), Edge("a", "b")))
share = st.integers(0, 16).map(lambda sixteenths: sixteenths / 16)
lists = st.lists(st.builds(Bundle, st.sampled_from(["a", "b"]), st.just(1), share, share), min_size=1, max_size=12)


@dataclass(frozen=True)
class Plain:
    """A mapper that keeps to itself how many slots it needs."""

    inner: Placer

    @property
    def name(self) -> str:
        return "plain"

    def place(self, topology: Topology, bundles: Sequence[Bundle], fleet: Sequence[Vm]) -> Placement | DoesNotFit:
        return self.inner.place(topology, bundles, fleet)


@dataclass(frozen=True)
class Never:
    @property
    def name(self) -> str:
        return "never"

    def place(self, topology: Topology, bundles: Sequence[Bundle], fleet: Sequence[Vm]) -> Placement | DoesNotFit:
        return DoesNotFit(f"not on {sum(vm.slots for vm in fleet)} slots")


@settings(max_examples=120)
@given(st.sampled_from([Sam(), Rsm()]), lists, st.sampled_from([(1, 2, 4), (4,), (1,)]))
def test_skipping_counts_that_must_fail_finds_what_adding_one_at_a_time_finds(
    placer: Sam | Rsm, bundles: list[Bundle], sizes: tuple[int, ...]
) -> None:
    quick = place_with_extra_slots(placer, ONE, bundles, slots_for(bundles), sizes)
    slow = place_with_extra_slots(Plain(placer), ONE, bundles, slots_for(bundles), sizes)
    assert (quick.extra_slots, quick.slots, quick.vms) == (slow.extra_slots, slow.slots, slow.vms)


def test_a_mapping_that_fits_has_no_extra_slots() -> None:
    found = place_with_extra_slots(Sam(), ONE, [Bundle("a", 1, 0.5, 0.5)] * 2, slots=1)
    assert (found.extra_slots, list(found.slots)) == (0, ["vm-1/1"])


def test_extra_slots_are_counted_and_explained() -> None:
    found = place_with_extra_slots(Sam(), ONE, [Bundle("a", 1, 0.6, 0.1)] * 5, slots=3)
    assert found.extra_slots == 2
    assert found.reasons[-1].startswith("2 slots more than the 3 planned: a: a bundle of 1 threads needs 60.0% CPU")


def test_the_mapper_sees_the_slots_asked_for_while_whole_vms_are_rented() -> None:
    found = place_with_extra_slots(Dsm(), ONE, [Bundle("a", 9, 0.9, 0.9)], slots=7)
    assert [vm.slots for vm in found.vms] == [4, 4]
    assert len(found.slots) == 7


def test_the_search_ends_and_the_last_reason_is_given() -> None:
    with pytest.raises(Infeasible, match=r"never maps these bundles on none of 2 to 9 slots, .+: not on 9 slots"):
        place_with_extra_slots(Never(), ONE, [], slots=2)


@pytest.mark.parametrize("placer", [Sam(), Rsm()], ids=lambda placer: placer.name)
def test_what_fits_on_no_fleet_is_refused_at_once(placer: Sam | Rsm) -> None:
    with pytest.raises(Infeasible, match="on no fleet"):
        place_with_extra_slots(placer, ONE, [Bundle("a", 1, 0.1, 1.5)], slots=2)


def test_no_slots_planned_for_a_thread_are_extra_slots() -> None:
    assert place_with_extra_slots(Dsm(), ONE, [Bundle("a", 1, 0.0, 0.0)], slots=0).extra_slots == 1


def test_many_extra_slots_are_found_without_trying_each() -> None:
    threads = [Bundle("a", 1, 0.51, 0.1)] * 20_000
    found = place_with_extra_slots(Sam(), ONE, threads, slots_for(threads))
    assert found.extra_slots == 9_800


@pytest.mark.parametrize("per_slot", [1, 3])
def test_instances_that_use_little_get_the_slots_that_es_stream_gives_them(per_slot: int) -> None:
    small = [Bundle("a", 1, 0.05, 0.01)] * 6 + [Bundle("b", 1, 0.05, 0.01)] * 6
    found = place_with_extra_slots(EsStreamPlacer(per_slot), ONE, small, slots_for(small))
    assert len(found.slots) == 12 / per_slot
    assert found.extra_slots == 12 / per_slot - 1
