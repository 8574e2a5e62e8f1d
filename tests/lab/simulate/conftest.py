from __future__ import annotations

from collections.abc import Callable

import pytest

from sluicegate.lab.simulate.world import World


@pytest.fixture(scope="session")
def count_rows() -> Callable[[World], int]:
    """Every row of a world, found by walking its lists: the plain count that the simulator's own must equal."""
    return _count_rows


def _count_rows(world: World) -> int:
    """Rows that wait, are in service, are held by a sender, or are in a batch; none may be in two places."""
    net = world.net
    found: list[int] = [int(row) for row in net.slots["row"] if row]
    for slot in net.slots[1:]:
        queued = _walk(world, int(slot["head"]), int(slot["waiting"]))
        assert len(queued) == int(slot["waiting"])
        found += queued + _walk(world, int(slot["pending"])) + _walk(world, int(slot["batch"]))
    assert len(found) == len(set(found)), "a row is in two places"
    waiting = int(net.nodes["waiting"].sum())
    assert waiting == int(net.slots["waiting"].sum())
    return len(found)


def _walk(world: World, row: int, most: int | None = None) -> list[int]:
    found: list[int] = []
    while row and (most is None or len(found) < most):
        found.append(row)
        row = int(world.net.rows["next"][row])
    return found
