"""Which faults come, in which order and how far apart: all of it from the seed, whatever the run does."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sluicegate.lab.chaos.faults import NOTHING, ChaosFault

_WAIT_S = (0.2, 2.0)
_TOGETHER = 0.2
"""The share of faults that come while the one before is not mended."""


@dataclass(frozen=True, slots=True)
class PlannedFault:
    """A fault so long after the one before; ``seed`` draws its target."""

    fault: ChaosFault
    wait_s: float
    together: bool
    seed: str


def schedule(faults: Sequence[ChaosFault], seed: int) -> Iterator[PlannedFault]:
    """For ever: rounds of every kind, as often as it comes in one, each round in another order.

    >>> from sluicegate.lab.chaos.faults import FAULTS
    >>> twice = [[next(plan).fault.name for _ in range(80)] for plan in (schedule(FAULTS, 7), schedule(FAULTS, 7))]
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
