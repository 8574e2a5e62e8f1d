"""Key groups move for a load that lasts or stands out, never for noise."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise

import pytest

from sluicegate.control.groups import GroupsSeen, moved_for
from sluicegate.policy.key_groups import Owners, largest_load, ranges

GROUPS, TASKS = 16, 4
Loads = Callable[[int], tuple[float, ...]]


def owners_over(looks: int, loads: Loads, batch_s: float | None = 0.5) -> list[Owners]:
    """The owners after every look, what they were before the first one in front."""
    seen, owners = GroupsSeen(), [ranges(GROUPS, TASKS)]
    for look in range(looks):
        seen, after, why = moved_for(seen, owners[-1], TASKS, loads(look), batch_s)
        assert bool(why) == (after != owners[-1])
        owners.append(after)
    return owners


def moves(owners: list[Owners]) -> list[int]:
    return [look for look, (before, after) in enumerate(pairwise(owners)) if before != after]


def noisy(seed: int, spread: float, each_s: float = 0.05) -> Loads:
    dice = random.Random(seed)
    return lambda _: tuple(each_s * dice.lognormvariate(0.0, spread) for _ in range(GROUPS))


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("spread", [0.3, 0.6, 1.0])
def test_noise_on_an_even_load_moves_groups_at_most_twice_in_fifty_looks(seed: int, spread: float) -> None:
    assert len(moves(owners_over(50, noisy(seed, spread)))) <= 2


@pytest.mark.parametrize("seed", range(20))
def test_groups_that_take_little_of_a_batch_never_move(seed: int) -> None:
    assert not moves(owners_over(50, noisy(seed, 0.6, each_s=0.001)))


@pytest.mark.parametrize("seed", range(20))
def test_hot_groups_are_spread_at_the_first_look_that_shows_them(seed: int) -> None:
    noise = noisy(seed, 0.2)

    def loads(look: int) -> tuple[float, ...]:
        hot = 8.0 if look >= 30 else 1.0
        return tuple(load * (hot if group in (0, 1) else 1.0) for group, load in enumerate(noise(look)))

    after_first_look = owners_over(31, loads)[-1]
    assert after_first_look[0] != after_first_look[1]


def test_a_small_difference_that_lasts_is_moved_though_single_looks_are_noisy() -> None:
    noise = noisy(3, 0.5)

    def loads(look: int) -> tuple[float, ...]:
        return tuple(load * (2.0 if group < 4 else 1.0) for group, load in enumerate(noise(look)))

    true = (2.0,) * 4 + (1.0,) * 12
    owners = owners_over(50, loads)
    assert largest_load(owners[-1], true) < largest_load(owners[0], true)


def test_a_move_is_not_followed_by_another_before_its_effect_was_measured() -> None:
    """Loads that turn around at every look would move groups at every look."""
    loads = [(4.0,) * 4 + (1.0,) * 12, (1.0,) * 12 + (4.0,) * 4]
    found = moves(owners_over(12, lambda look: loads[look % 2]))
    assert found
    assert all(after - before > 4 for before, after in pairwise(found))
