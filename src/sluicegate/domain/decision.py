"""What the loop decided, with its reasons, and what it refused, with the numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sluicegate.domain.allocation import Prediction, Proposal


@dataclass(frozen=True, slots=True)
class Rescale:
    """One operator's change."""

    operator: str
    have: int
    want: int
    reason: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """A change that was proposed and is not made; ``rule`` names the governor's rule, ``why`` gives the numbers."""

    rule: str
    why: str


@dataclass(frozen=True, slots=True)
class Decision:
    """The outcome of one tick. ``running`` is what should run from now on."""

    at_s: float
    running: Mapping[str, int]
    rescales: tuple[Rescale, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    reasons: tuple[str, ...] = ()
    proposal: Proposal | None = None
    predicted: Prediction | None = None
    shares: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    pace_s: Mapping[str, float] = field(default_factory=dict)

    @property
    def moves(self) -> bool:
        return bool(self.rescales)
