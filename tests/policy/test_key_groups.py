from __future__ import annotations

from itertools import pairwise, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluicegate.errors import BadInput
from sluicegate.policy.key_groups import (
    Repartition,
    balanced,
    largest_load,
    ranges,
    rebalance,
    repartition,
)

counts = st.integers(1, 40)


@st.composite
def groups_and_changes(draw: st.DrawFn) -> tuple[int, list[int]]:
    groups = draw(st.integers(1, 64))
    return groups, draw(st.lists(st.integers(1, groups), min_size=2, max_size=6))


@given(groups_and_changes())
def test_every_group_has_one_owner_and_every_instance_a_group_after_any_changes(
    case: tuple[int, list[int]],
) -> None:
    groups, changes = case
    owners = ranges(groups, changes[0])
    for instances in changes[1:]:
        owners = repartition(owners, instances).after
        sizes = [owners.count(instance) for instance in range(instances)]
        assert sum(sizes) == len(owners) == groups
        assert min(sizes) >= 1
        assert max(sizes) - min(sizes) <= 1


@given(groups_and_changes())
def test_a_change_moves_no_more_than_the_instances_that_come_or_go_hold(case: tuple[int, list[int]]) -> None:
    groups, changes = case
    owners = ranges(groups, changes[0])
    for before, after in pairwise(changes):
        plan = repartition(owners, after)
        assert len(plan.moves) <= abs(after - before) * -(-groups // max(before, after))
        owners = plan.after


@settings(max_examples=30)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=6), st.integers(1, 4))
def test_no_even_assignment_moves_fewer_groups(before: list[int], instances: int) -> None:
    instances = min(instances, len(before))
    fewest = min(
        sum(old != new for old, new in zip(before, owners, strict=True))
        for owners in product(range(instances), repeat=len(before))
        if max(map(owners.count, range(instances))) - min(map(owners.count, range(instances))) <= 1
    )
    assert len(repartition(before, instances).moves) == fewest


def test_the_same_number_moves_nothing() -> None:
    assert repartition(ranges(10, 3), 3).moves == ()


def test_erratum_hash_mod_m_moves_nearly_all_keys_and_key_groups_only_what_must() -> None:
    by_groups = len(repartition(ranges(240, 14), 15).moves) / 240
    assert sum(key % 14 != key % 15 for key in range(210)) / 210 > 0.9
    assert by_groups == pytest.approx(1 / 15, abs=0.01)


def test_eq_23_cuts_the_state_of_an_old_instance_into_disjoint_parts() -> None:
    plan = repartition(ranges(12, 2), 3)
    for origin in range(2):
        parts = plan.parts(origin)
        cut = [group for part in parts.values() for group in part]
        assert sorted(cut) == [group for group, owner in enumerate(plan.before) if owner == origin]


def test_erratum_eq_24_merges_what_comes_from_the_old_instances() -> None:
    plan = repartition(ranges(12, 4), 2)
    for target in range(2):
        merged = plan.merged(target)
        assert set(merged) <= set(range(4))
        assert sorted(g for part in merged.values() for g in part) == [
            group for group, owner in enumerate(plan.after) if owner == target
        ]
    assert {origin for target in range(2) for origin in plan.merged(target)} == set(range(4))


def test_more_instances_than_groups_are_refused() -> None:
    with pytest.raises(BadInput, match="at most 4"):
        ranges(4, 5)
    with pytest.raises(BadInput, match="at most 4"):
        repartition(ranges(4, 2), 5)


def test_the_number_of_groups_never_changes() -> None:
    with pytest.raises(BadInput, match="G never changes"):
        Repartition((0, 0), (0, 0, 0))


def test_counts_below_one_are_refused() -> None:
    with pytest.raises(BadInput):
        ranges(4, 0)


loads = st.lists(st.floats(0, 100), min_size=1, max_size=30)


@given(loads, st.integers(1, 30))
def test_every_instance_gets_a_group_whatever_the_loads(some: list[float], instances: int) -> None:
    instances = min(instances, len(some))
    assert set(balanced(some, instances)) == set(range(instances))


@settings(max_examples=30)
@given(st.lists(st.integers(0, 20), min_size=1, max_size=7), st.integers(1, 3))
def test_the_largest_load_is_within_a_third_of_the_least_possible(some: list[int], instances: int) -> None:
    instances = min(instances, len(some))
    exact = [float(load) for load in some]
    least = min(largest_load(owners, exact) for owners in product(range(instances), repeat=len(exact)))
    bound = 4 / 3 - 1 / (3 * instances)
    assert largest_load(balanced(exact, instances), exact) <= bound * least + 1e-9


@given(loads, st.integers(1, 8))
def test_renaming_never_makes_an_instance_carry_more(some: list[float], instances: int) -> None:
    instances = min(instances, len(some))
    plan = rebalance(ranges(len(some), instances), some, instances)
    assert largest_load(plan.after, some) == pytest.approx(largest_load(balanced(some, instances), some))
    assert set(plan.after) == set(range(instances))


def test_a_balanced_assignment_is_left_alone() -> None:
    before = balanced([5.0, 3.0, 4.0, 2.0], 2)
    swapped = tuple(1 - owner for owner in before)
    assert rebalance(swapped, [5.0, 3.0, 4.0, 2.0], 2).moves == ()


def test_one_heavy_group_gets_an_instance_of_its_own() -> None:
    owners = rebalance(ranges(8, 2), [90.0] + [1.0] * 7, 2).after
    assert owners.count(owners[0]) == 1


def test_owners_of_gone_instances_find_new_ones() -> None:
    assert set(rebalance((0, 1, 2, 3), [1.0] * 4, 2).after) == {0, 1}


def test_bad_loads_are_refused() -> None:
    with pytest.raises(BadInput, match="load of a key group"):
        balanced([1.0, -1.0], 1)
    with pytest.raises(BadInput, match="measure each once"):
        rebalance((0, 0), [1.0], 1)
    with pytest.raises(BadInput, match="at most 1"):
        balanced([1.0], 2)
