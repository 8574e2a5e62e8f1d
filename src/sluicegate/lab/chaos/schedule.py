"""The order and spacing of faults, drawn from the seed alone, so independent of how the run goes."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sluicegate.lab.chaos.faults import NOTHING, ChaosFault

_WAIT_S = (0.1, 1.0)
_TOGETHER = 0.5
"""The share of faults after which the next is injected without waiting for recovery."""


@dataclass(frozen=True, slots=True)
class PlannedFault:
    """A fault, the pause after it, whether the next one overlaps with it, and the seed that draws its target."""

    fault: ChaosFault
    wait_s: float
    together: bool
    seed: str


def schedule(faults: Sequence[ChaosFault], seed: int) -> Iterator[PlannedFault]:
    """Yield faults without end: each round has every kind ``often`` times, in a new random order.

    >>> from sluicegate.lab.chaos.faults import FAULTS
    >>> twice = [[next(plan).fault.name for _ in range(200)] for plan in (schedule(FAULTS, 7), schedule(FAULTS, 7))]
    >>> twice[0] == twice[1], len(set(twice[0])) == len(FAULTS)
    (True, True)
    """
    rng, number = random.Random(f"{seed} faults"), 0
    while True:
        of_a_round = [fault for fault in faults for _ in range(fault.often)]
        for fault in rng.sample(of_a_round, len(of_a_round)):
            together = rng.random() < _TOGETHER and fault.name != NOTHING
            yield PlannedFault(fault, rng.uniform(*_WAIT_S), together, f"{seed} {number}")
            number += 1
