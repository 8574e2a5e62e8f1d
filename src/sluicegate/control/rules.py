"""What the governor is told, asked and remembers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sluicegate.domain import Refusal, Rescale
from sluicegate.errors import BadInput

SLIGHT = 0.1
"""A share that is not worth a change: within it paces, processors and owners of key groups stay, and key groups kept
for growth may make a batch so much longer. Half: changes for noise. Double: a task a fifth behind the others stays."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The governor's settings, in seconds and shares.

    ``cooldown_s`` = inf only ever recommends. ``must_share``: a dead band never holds back an operator whose
    utilisation at its present size is above this. ``calm_share`` of a latency bound: above it nothing is taken away.
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
        ):
            value = getattr(self, what)
            if math.isnan(value) or value < 0:
                raise BadInput(f"governor {what} is {value}: give 0 or more")

    @classmethod
    def none(cls) -> Rules:
        """Rules that let everything through: for studying a policy alone."""
        return cls(0.0, 0.0, 0.0, 0.0, math.inf, 0.0, math.inf, 0.0, math.inf)


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of the governor, in plain numbers.

    ``late`` is the measured latency over its bound (above 1: the promise is broken), ``None`` if unknown.
    ``sojourns_s`` gives the model's E[T] for what runs and for what is wanted, worked out only if it comes to that;
    ``capacity_want_per_s`` is the rate that what is wanted carries.
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
        """What a refusal leaves in force: what was asked for, though it may not run yet."""
        return self.have if self.asked is None else {name: self.asked.get(name, k) for name, k in self.have.items()}


@dataclass(frozen=True, slots=True)
class Attempt:
    """The last time more processors were given, and how things stood then."""

    at_s: float
    arrivals_per_s: float
    late: float | None
    processors: int


@dataclass(frozen=True, slots=True)
class Ledger:
    """What the governor remembers."""

    moved_at_s: float | None = None
    wanted: tuple[tuple[float, Mapping[str, int]], ...] = ()
    executors: tuple[tuple[float, int], ...] = ()
    last_raise: Attempt | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What runs from now on, the changes that lead there, and what was refused."""

    running: Mapping[str, int]
    rescales: tuple[Rescale, ...] = ()
    refusals: tuple[Refusal, ...] = ()
