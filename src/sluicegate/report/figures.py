"""Formats figures for people."""

from __future__ import annotations

import math
from collections.abc import Mapping


def seconds(value: float | None) -> str:
    """A duration, rounded, in a unit that fits it.

    >>> seconds(0.0), seconds(0.0123), seconds(2.5), seconds(91_800.0), seconds(None), seconds(float("inf"))
    ('0 s', '12.3 ms', '2.5 s', '25.5 h', '-', 'never')
    """
    if value is None:
        return "-"
    if math.isinf(value):
        return "never"
    if value == 0:
        return "0 s"
    if value < 1e-3:
        return f"{value * 1e6:.3g} us"
    if value < 1:
        return f"{value * 1e3:.3g} ms"
    if value < 120:
        return f"{value:.3g} s"
    return f"{value / 60:.3g} min" if value < 7200 else f"{value / 3600:.3g} h"


def rate(value: float) -> str:
    """Rows a second.

    >>> rate(1234.5), rate(float("inf"))
    ('1,234 rows/s', 'any rate')
    """
    if math.isinf(value):
        return "any rate"
    return f"{value:,.0f} rows/s" if value >= 100 else f"{value:.3g} rows/s"


def share(value: float | None) -> str:
    """A share in percent; less than all is never rounded up to 100%.

    >>> share(0.9996), share(1.0), share(0.62), share(None)
    ('99.9%', '100%', '62.0%', '-')
    """
    if value is None:
        return "-"
    return "100%" if value == 1 else f"{min(value, 0.999):.1%}" if value < 1 else f"{value:.0%}"


def number_of(number: int, what: str, several: str = "") -> str:
    """
    >>> number_of(1, "move"), number_of(0, "move"), number_of(2, "batch", "batches")
    ('1 move', '0 moves', '2 batches')
    """
    return f"{number:,} {what if number == 1 else several or f'{what}s'}"


def promise(bounds: Mapping[str, float]) -> str:
    """
    >>> promise({"mean": 3.0, "p95": 5.0}), promise({})
    ('mean <= 3 s, p95 <= 5 s', 'no promise')
    """
    return ", ".join(f"{what} <= {seconds(bound_s)}" for what, bound_s in bounds.items()) or "no promise"


def clock(at_s: float) -> str:
    """Minutes and seconds since the start.

    >>> clock(0), clock(95), clock(3725)
    ('0:00', '1:35', '1:02:05')
    """
    minutes, left = divmod(round(at_s), 60)
    return f"{minutes}:{left:02}" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02}:{left:02}"
