"""DRS's smoothing of what is measured: exponential, or the mean of a window.

    D(n) = alpha D(n-1) + (1 - alpha) d(n),  alpha in [0, 1)          or          mean of the last w values

A missing value leaves the smoothed one as it was.
"""

from __future__ import annotations

from dataclasses import dataclass

from headgate.errors import BadInput


@dataclass(frozen=True, slots=True)
class Smoothing:
    """How to smooth: ``alpha`` (weight of the past) or, if set, a mean over ``window`` values.

    | alpha | values until 90% of a jump is seen |
    |-------|-------------------------------------|
    | 0     | 1                                   |
    | 0.5   | 4                                   |
    | 0.8   | 11                                  |
    """

    alpha: float = 0.5
    window: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.alpha < 1:
            raise BadInput(f"alpha is {self.alpha}: smoothing needs 0 <= alpha < 1")
        if self.window is not None and self.window < 1:
            raise BadInput(f"window is {self.window}: smoothing needs at least 1 value")


@dataclass(frozen=True, slots=True)
class Smoothed:
    """One smoothed quantity: its value, and the values that a window still needs."""

    value: float | None = None
    recent: tuple[float, ...] = ()

    def after(self, measured: float | None, smoothing: Smoothing) -> Smoothed:
        """With one more measurement.

        >>> s = Smoothed().after(10.0, Smoothing(alpha=0.5)).after(20.0, Smoothing(alpha=0.5))
        >>> s.value, s.after(None, Smoothing()).value
        (15.0, 15.0)
        """
        if measured is None:
            return self
        if smoothing.window is not None:
            recent = (*self.recent, measured)[-smoothing.window :]
            return Smoothed(sum(recent) / len(recent), recent)
        if self.value is None:
            return Smoothed(measured)
        return Smoothed(smoothing.alpha * self.value + (1 - smoothing.alpha) * measured)
