from __future__ import annotations

import pytest

from sluicegate.domain import Bundle, Vm
from sluicegate.errors import BadInput
from sluicegate.place.slot_ledger import SlotLedger

FLEET = [Vm("n1", 1), Vm("n2", 2)]


def one(cpu: float, memory: float = 0.0, *, full: bool = False) -> Bundle:
    return Bundle("a", 1, cpu, memory, full)


def test_shares_that_sum_to_a_whole_slot_fit_in_spite_of_rounding() -> None:
    ledger = SlotLedger(FLEET)
    for _ in range(10):
        slot = ledger.slot_for(0, one(0.1))
        assert slot == 0
        ledger.put(slot, one(0.1))
    assert ledger.slot_for(0, one(0.1)) is None


def test_memory_bounds_a_slot_as_well() -> None:
    ledger = SlotLedger(FLEET)
    ledger.put(1, one(0.1, 0.9))
    assert ledger.slot_for(1, one(0.1, 0.2)) == 2


def test_a_full_bundle_shares_its_slot_with_nobody() -> None:
    ledger = SlotLedger(FLEET)
    ledger.put(0, one(0.5, full=True))
    assert ledger.slot_for(0, one(0.1)) is None
    ledger.put(1, one(0.1))
    assert ledger.slot_for(1, one(0.5, full=True)) == 2


def test_a_slot_takes_no_more_bundles_than_allowed() -> None:
    ledger = SlotLedger(FLEET, most_per_slot=2)
    ledger.put(0, one(0.1))
    assert ledger.slot_for(0, one(0.1)) == 0
    ledger.put(0, one(0.1))
    assert ledger.slot_for(0, one(0.1)) is None


def test_what_is_removed_leaves_its_room() -> None:
    ledger = SlotLedger(FLEET)
    ledger.put(0, one(1.0))
    ledger.remove(0, one(1.0))
    assert ledger.slot_for(0, one(1.0)) == 0
    assert not ledger.hosts[0].total()


def test_vms_are_ordered_by_what_they_have_left() -> None:
    ledger = SlotLedger([*FLEET, Vm("n3", 2)])
    assert ledger.by_room() == [1, 2, 0]
    ledger.put(1, one(0.5))
    assert ledger.by_room() == [2, 1, 0]


def test_a_bundle_larger_than_a_slot_fits_nowhere() -> None:
    ledger = SlotLedger(FLEET)
    assert ledger.slot_for(1, one(1.5)) is None


def test_two_vms_of_one_name_are_refused() -> None:
    with pytest.raises(BadInput, match="one name"):
        SlotLedger([Vm("n1", 1), Vm("n1", 1)])
