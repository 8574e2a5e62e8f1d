from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluicegate.errors import BadInput
from sluicegate.policy.balanced_groups import balanced, largest_load, rebalance
from sluicegate.policy.key_groups import ranges

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
