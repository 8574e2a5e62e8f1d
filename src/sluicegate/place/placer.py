"""The placer interface: maps bundles of threads to the slots of a fleet, or gives the reason why they do not fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from sluicegate.domain import Bundle, Placement, Topology, Vm


@dataclass(frozen=True, slots=True)
class DoesNotFit:
    """The bundles do not fit on the fleet; ``why`` names the first that had no room, with the numbers."""

    why: str


class Placer(Protocol):
    """A mapper of threads to slots."""

    @property
    def name(self) -> str: ...

    def place(self, topology: Topology, bundles: Sequence[Bundle], fleet: Sequence[Vm]) -> Placement | DoesNotFit: ...
