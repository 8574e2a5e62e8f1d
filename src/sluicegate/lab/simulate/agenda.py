"""The event queue: a tournament tree over slots, each of which has one next event or none (time ``inf``).

The leaves of a complete binary tree are the slots; every inner node holds the earlier of its two children, so the
next event is at the root. Setting a slot's time updates its path to the root only: log2(slots) branch-free comparisons,
which is faster than a binary heap here; and unlike in a heap any time can be changed or cancelled. At equal times the
slot whose time was set last goes first.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sluicegate.lab.simulate.compiled import inlined

Agenda: TypeAlias = NDArray[np.void]
NODE = np.dtype([("time", np.float64), ("slot", np.uint32)], align=True)


def empty_agenda(slots: int) -> Agenda:
    """An agenda for ``slots`` slots without events."""
    leaves = 1
    while leaves < max(slots, 2):
        leaves *= 2
    agenda = np.zeros(2 * leaves, dtype=NODE)
    agenda["time"] = math.inf
    agenda["slot"][leaves:] = np.arange(leaves)
    for i in range(leaves - 1, 0, -1):
        agenda["slot"][i] = agenda["slot"][2 * i]
    return agenda


def times(agenda: Agenda) -> NDArray[np.float64]:
    """The time of the next event of each slot."""
    leaves: NDArray[np.float64] = agenda["time"][len(agenda) // 2 :]
    return leaves


@inlined
def schedule(agenda: Agenda, slot: int, time: float) -> None:
    """Set the time of the next event of ``slot``; ``inf`` cancels it."""
    i = (agenda.size >> 1) + slot
    agenda[i]["time"] = time
    winner = np.uint32(slot)
    while i > 1:
        sibling = agenda[i ^ 1]
        other_time, other = sibling["time"], sibling["slot"]
        earlier = other_time < time
        time = other_time if earlier else time
        winner = other if earlier else winner
        i >>= 1
        parent = agenda[i]
        parent["time"] = time
        parent["slot"] = winner


@inlined
def due(agenda: Agenda, slot: int) -> float:
    """The time of the next event of ``slot``."""
    time: float = agenda[(agenda.size >> 1) + slot]["time"]
    return time
