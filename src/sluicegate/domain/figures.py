"""Formats figures for people."""

from __future__ import annotations

import math
from collections.abc import Mapping


def seconds(value: float | None) -> str:
    """A duration, rounded, in a unit that fits it.

    >>> seconds(0.0), seconds(0.0123), seconds(2.5), seconds(91_800.0), seconds(None), seconds(float("inf"))
    ('0 s', '12.3 ms', '2.5 s', '25.5 h', '-', 'never')
    >>> seconds(0.9996), seconds(0.000_999_9), seconds(119.9), seconds(7_199.0), seconds(9e6)
    ('1 s', '1 ms', '120 s', '120 min', '2,500 h')
    """
    if value is None:
        return "-"
    if math.isinf(value):
        return "never"
    if value == 0:
        return "0 s"
    if value < 0.9995e-3:  # from there on rounded to the next unit
        return f"{value * 1e6:.3g} us"
    if value < 0.9995:
        return f"{value * 1e3:.3g} ms"
    if value < 120:
        return f"{value:.3g} s"
    if value < 7200:
        return f"{value / 60:.3g} min"
    return f"{value / 3600:.3g} h" if value < 999.5 * 3600 else f"{value / 3600:,.0f} h"


def rate(value: float, digits: int = 3) -> str:
    """Rows a second, with that many digits at least where they differ from whole rows.

    >>> rate(1234.5), rate(12.345), rate(50_120.0), rate(float("inf"))
    ('1,234 rows/s', '12.3 rows/s', '50,120 rows/s', 'any rate')
    >>> rate(1234.5, digits=6), rate(1_234_567.0, digits=6)
    ('1,234.5 rows/s', '1,234,567 rows/s')
    """
    if math.isinf(value):
        return "any rate"
    return f"{value:,.0f} rows/s" if abs(value) >= 10 ** (digits - 1) else f"{value:,.{digits}g} rows/s"


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
