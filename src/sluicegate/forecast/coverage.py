"""How often what was announced as an upper bound held: the test of every forecast that names a probability.

achieved = share of the last ``window`` steps with actual <= announced
"""

from __future__ import annotations

from dataclasses import dataclass

from sluicegate.domain.topology import require


@dataclass(frozen=True, slots=True)
class Coverage:
    """A window of hits, the newest in the lowest bit of ``hits``.

    >>> seen = Coverage().record(announced_per_s=110.0, actual_per_s=100.0).record(110.0, 120.0)
    >>> seen.achieved, seen.number
    (0.5, 2)
    """

    window: int = 1000
    hits: int = 0
    number: int = 0

    def __post_init__(self) -> None:
        require(self.window >= 1, f"window is {self.window}: keep at least 1 step")

    def record(self, announced_per_s: float, actual_per_s: float) -> Coverage:
        """One announced bound and what came."""
        kept = ((self.hits << 1) | (actual_per_s <= announced_per_s)) & ((1 << self.window) - 1)
        return Coverage(self.window, kept, min(self.number + 1, self.window))

    @property
    def achieved(self) -> float | None:
        """The share of bounds that held; ``None`` before the first."""
        return self.hits.bit_count() / self.number if self.number else None
