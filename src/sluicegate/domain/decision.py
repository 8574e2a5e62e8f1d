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
class Change:
    """A change of anything but an operator's processors: executors, nodes, places, key groups, shares, pace."""

    what: str
    have: str
    want: str
    reason: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """A change that was proposed and is not made; ``rule`` names the governor's rule, ``why`` gives the numbers."""

    rule: str
    why: str


@dataclass(frozen=True, slots=True)
class Decision:
    """The outcome of one tick: all that should hold from now on. ``running`` are the processors of each operator.

    ``executors`` and ``nodes`` are how many there should be, ``leaving`` the nodes to give back, ``places`` the host of
    every processor, ``groups`` the task of every key group; none where nothing is to be said. ``key_groups`` are the
    numbers of key groups that state should be in, where another one was decided. ``rescales`` and ``changes`` are what
    differs from before, each with its reason.
    """

    at_s: float
    running: Mapping[str, int]
    rescales: tuple[Rescale, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    reasons: tuple[str, ...] = ()
    proposal: Proposal | None = None
    predicted: Prediction | None = None
    shares: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    pace_s: Mapping[str, float] = field(default_factory=dict)
    executors: int | None = None
    nodes: int | None = None
    leaving: tuple[str, ...] = ()
    places: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    groups: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    key_groups: Mapping[str, int] = field(default_factory=dict)
    changes: tuple[Change, ...] = ()

    @property
    def moves(self) -> bool:
        """Whether processors move."""
        return bool(self.rescales)
