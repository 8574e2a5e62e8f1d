"""The control loop's decision at one tick: the changes with their reasons, the refused changes with their numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sluicegate.domain.allocation import Prediction, Proposal


@dataclass(frozen=True, slots=True)
class Rescale:
    """A change of one operator's processors from ``have`` to ``want``."""

    operator: str
    have: int
    want: int
    reason: str


@dataclass(frozen=True, slots=True)
class Change:
    """A change of anything but an operator's processors: executors, nodes, task placement, key groups, shares, pace."""

    what: str
    have: str
    want: str
    reason: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """A proposed change that is not applied; ``rule`` names the governor's rule, ``why`` gives the numbers."""

    rule: str
    why: str


@dataclass(frozen=True, slots=True)
class Decision:
    """The outcome of one tick: the complete target state. ``running`` is the processors of each operator.

    ``executors`` and ``nodes`` are target counts, ``leaving`` the nodes to release, ``places`` the host of every
    processor, ``groups`` the task of every key group; each is ``None`` or empty where nothing was decided.
    ``key_groups`` is the new number of key groups of an operator's state, where it changes. ``rescales`` and
    ``changes`` list the differences from the previous state, each with its reason.
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
        """Whether the processors of any operator change."""
        return bool(self.rescales)
