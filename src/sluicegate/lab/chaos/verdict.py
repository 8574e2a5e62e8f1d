"""What faults were seen to do: each with its time to recover, and the answer against the right one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

RECOVERS_WITHIN_S = 240.0
Told = Callable[[str], None]
"""Is told every line as it happens."""


@dataclass(slots=True)
class FaultSeen:
    """A fault, when it came, what it hit, when all rows of before had come out again, and what was said."""

    at_s: float
    kind: str
    target: str
    recovered_s: float | None = None
    lines: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ChaosVerdict:
    """``broken`` are the invariants that do not hold, a line each; ``moves`` the changes of k made by hand."""

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
