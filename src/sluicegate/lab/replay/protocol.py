"""When a replay lets a policy decide, and from when on its machines serve and are paid for.

    cycle   the paper's: one number for each cycle of 10 minutes, decided 2 minutes ahead; one draw of capacity a cycle.
            A policy that decides when the cycle starts has what is new 2 minutes late.
    free    at any minute; a machine serves 2 minutes after it was asked for and is paid for from then on, stopping is
            at once and those that still start are stopped first; a draw of capacity a minute.

A decision at minute t knows the rates of finished minutes only, up to t - 1. The first cycle runs with what the trace's
first rate and 20% need: the same for everyone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sluicegate.errors import BadInput
from sluicegate.lab.replay.truth import Ints

STEP_S = 60.0


@dataclass(frozen=True, slots=True)
class Protocol:
    """Steps are minutes. ``first`` is the first step that a decision may be made for."""

    name: str
    cycle_steps: int
    startup_steps: int = 2

    @property
    def free(self) -> bool:
        return self.cycle_steps == 1

    @property
    def draw_steps(self) -> int:
        return self.cycle_steps

    @property
    def lead_steps(self) -> int:
        """How long before its cycle a decision is made; any minute is in time where all may be used."""
        return 0 if self.free else self.startup_steps

    @property
    def bound(self) -> tuple[int, int]:
        """First and last step that a decision binds, counted from the last rate it knows."""
        first = self.startup_steps + 1
        return first, first + self.cycle_steps - 1

    def decides(self, t: int, lead_steps: int) -> bool:
        """Whether minute ``t`` is one at whose start a decision counts."""
        return t >= 1 and (t + lead_steps) % self.cycle_steps == 0

    def serving(self, asked: Ints, late_steps: int) -> Ints:
        """The machines that serve: of those asked for, the ones asked for ``late_steps`` ago and ever since.

        >>> PROTOCOLS["free"].serving(np.array([5, 8, 7, 7, 4]), 2).tolist()
        [5, 5, 5, 7, 4]
        """
        serving = asked.copy()
        for back in range(1, min(late_steps, len(asked) - 1) + 1):
            serving[back:] = np.minimum(serving[back:], asked[:-back])
        return serving


PROTOCOLS = {"cycle": Protocol("cycle", cycle_steps=10), "free": Protocol("free", cycle_steps=1)}
HINDSIGHT_STEPS = 10  # cost is held against the hindsight minimum per 10-minute cycle, in both protocols


def protocol_named(name: str) -> Protocol:
    """The protocol; an unknown name is an error that lists the known ones."""
    try:
        return PROTOCOLS[name]
    except KeyError:
        raise BadInput(f"unknown protocol {name!r}: choose {' or '.join(PROTOCOLS)}") from None
