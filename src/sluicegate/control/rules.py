"""Data types of the governor: rules, request, memory and verdict."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sluicegate.domain import Refusal, Rescale
from sluicegate.errors import BadInput

SLIGHT = 0.1
"""Relative difference below which paces, processors and owners of key groups are not changed, and the share of the
latency goal that spare key groups may add to a batch. Half: changes due to noise. Double: a task a fifth slower than
the others is not relieved."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The governor's settings, in seconds and shares.

    With ``cooldown_s`` = inf changes are only recommended. ``must_share``: the dead band does not stop growth of an
    operator whose utilisation at its current size is above this. ``calm_share``: above this share of a latency bound
    the total does not fall. ``risen_share``: the cool-down does not stop growth if the load has risen by more than this
    share since the last move.
    """

    cooldown_s: float = 30.0
    settle_down_s: float = 300.0
    dead_band: float = SLIGHT
    must_share: float = 0.95
    horizon_s: float = 600.0
    pause_s: float = 1.0
    stale_after_s: float = 60.0
    helped_share: float = 0.05
    calm_share: float = math.inf
    risen_share: float = math.inf

    def __post_init__(self) -> None:
        for what in (
            "cooldown_s",
            "settle_down_s",
            "dead_band",
            "horizon_s",
            "pause_s",
            "stale_after_s",
            "helped_share",
            "calm_share",
            "risen_share",
        ):
            value = getattr(self, what)
            if math.isnan(value) or value < 0:
                raise BadInput(f"governor {what} is {value}: give 0 or more")

    @classmethod
    def none(cls) -> Rules:
        """Rules that allow everything: for studying a policy alone."""
        return cls(0.0, 0.0, 0.0, 0.0, math.inf, 0.0, math.inf, 0.0, math.inf)


@dataclass(frozen=True, slots=True)
class Request:
    """A proposed change with the measurements that the rules need.

    ``late`` is the measured latency over its bound (above 1: the goal is missed), ``None`` if unknown. ``sojourns_s``
    returns the model's E[T] of the running and of the wanted allocation; it is called only if needed.
    ``capacity_want_per_s`` is the rate that the wanted allocation carries.
    """

    now_s: float
    observed_at_s: float
    arrivals_per_s: float | None
    rescaling: bool
    have: Mapping[str, int]
    want: Mapping[str, int]
    utilisation: Mapping[str, float]
    late: float | None = None
    sojourns_s: Callable[[], tuple[float, float]] = lambda: (math.inf, math.inf)
    capacity_want_per_s: float = math.inf
    starting: bool = False
    unmeasured: frozenset[str] = frozenset()
    asked: Mapping[str, int] | None = None
    crowded: bool = False

    @property
    def stays(self) -> Mapping[str, int]:
        """The allocation that a refusal keeps: the requested one, even if it does not run yet."""
        return self.have if self.asked is None else {name: self.asked.get(name, k) for name, k in self.have.items()}


@dataclass(frozen=True, slots=True)
class Attempt:
    """The last increase of processors: its time, the load, the lateness and the new total."""

    at_s: float
    arrivals_per_s: float
    late: float | None
    processors: int


@dataclass(frozen=True, slots=True)
class Ledger:
    """The governor's memory. ``patience`` is by how much the window of executors has grown.

    ``moved_per_s`` is the load at the last move; ``None`` before the first.
    """

    moved_at_s: float | None = None
    moved_per_s: float | None = None
    wanted: tuple[tuple[float, Mapping[str, int]], ...] = ()
    executors: tuple[tuple[float, int], ...] = ()
    patience: float = 1.0
    executor_left_s: float | None = None
    paces: tuple[tuple[float, Mapping[str, float]], ...] = ()
    last_raise: Attempt | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The allocation from now on, the rescales that lead to it, and the refusals."""

    running: Mapping[str, int]
    rescales: tuple[Rescale, ...] = ()
    refusals: tuple[Refusal, ...] = ()
