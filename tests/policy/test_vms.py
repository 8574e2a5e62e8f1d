from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.errors import BadInput
from sluicegate.policy.vms import rent


@pytest.mark.parametrize(
    ("slots", "sizes"),
    [(1, (1,)), (2, (2,)), (3, (4,)), (4, (4,)), (5, (4, 1)), (6, (4, 2)), (7, (4, 4)), (15, (4, 4, 4, 4))],
)
def test_the_largest_that_fit_wholly_then_the_smallest_that_covers_the_rest(slots: int, sizes: tuple[int, ...]) -> None:
    assert rent(slots, (1, 2, 4)).sizes == sizes


@given(st.integers(0, 500), st.sets(st.integers(1, 30), min_size=1))
def test_a_fleet_covers_its_slots_and_no_vm_of_it_is_idle(slots: int, sizes: set[int]) -> None:
    fleet = rent(slots, sizes)
    assert fleet.slots >= slots
    assert set(fleet.sizes) <= sizes
    assert sum(fleet.sizes[:-1]) < slots or not slots
    assert len({vm.name for vm in fleet.vms}) == len(fleet.vms)


def test_no_slots_need_no_fleet() -> None:
    assert rent(0).vms == ()
    assert rent(0).cost_per_hour == 0.0


def test_sizes_in_any_order_and_twice_are_the_same_sizes() -> None:
    assert rent(7, (4, 1, 2, 4, 1)) == rent(7, (1, 2, 4))


def test_the_price_is_in_proportion_to_the_rented_slots() -> None:
    assert rent(7, (1, 2, 4), price_per_slot_hour=0.1).cost_per_hour == pytest.approx(0.8)


@pytest.mark.parametrize("sizes", [(), (0,), (4, -1)])
def test_sizes_without_slots_are_refused(sizes: tuple[int, ...]) -> None:
    with pytest.raises(BadInput, match="VM size"):
        rent(3, sizes)


def test_fewer_than_no_slots_are_refused() -> None:
    with pytest.raises(BadInput, match="-1 slots"):
        rent(-1)


@pytest.mark.parametrize("price", [-0.1, float("nan"), float("inf")])
def test_a_price_that_is_none_is_refused(price: float) -> None:
    with pytest.raises(BadInput, match="price"):
        rent(1, price_per_slot_hour=price)
