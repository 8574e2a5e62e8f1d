"""The result of a chaos run: recovery time of each fault, and how the answer compares with the right one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

RECOVERS_WITHIN_S = 240.0
Progress = Callable[[str], None]
"""Called with each progress line."""


@dataclass(slots=True)
class FaultSeen:
    """A fault: when it was injected, its target, seconds to recover (``None``: it did not), messages of the driver."""

    at_s: float
    kind: str
    target: str
    recovered_s: float | None = None
    lines: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ChaosVerdict:
    """The verdict: ``broken`` has one line per violated invariant, ``moves`` counts the plan changes by the load."""

    faults: tuple[FaultSeen, ...]
    rows_in: int
    lost: int | None
    duplicated: int | None
    wrong_keys: int | None
    exact: bool
    note: str
    broken: tuple[str, ...]
    starts: int
    moves: int

    @property
    def good(self) -> bool:
        return self.exact and not self.broken and all(one.recovered_s is not None for one in self.faults)
