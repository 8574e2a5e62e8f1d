"""The right answers of the five tasks, computed independently: without reading, parsing or Viete's product."""

from __future__ import annotations

import zlib
from functools import cache

from sluicegate.lab.apps.five_tasks import DIGITS, MESSAGES, PLACES, TERMS, first_digit, line, loads
from sluicegate.lab.apps.inputs.local_store import BLOBS, RECORDS, blob, record

_GUARD = 20
"""Guard digits beyond the requested places, cut off at the end to absorb rounding."""


def answers(number: int) -> dict[str, object]:
    """The answers of all tasks for the number in a row."""
    return {
        "blob": _checksum(number % BLOBS),
        "table": sum(record(number % RECORDS).values()),
        "pi": polygon(PLACES)[first_digit(number) :][:DIGITS],
        "parse": _load(number % MESSAGES),
        "batch": zlib.crc32(line(number)),
    }


@cache
def polygon(places: int) -> str:
    """Viete's product of n terms is half the circumference of a polygon with 2^(n+2) sides, 2^(n+1) sin(pi / 2^(n+1)).

    Computed here by the series of the sine, in integers.

    >>> polygon(12)
    '141592652386'
    """
    one = 10 ** (places + _GUARD)
    angle = _pi(one) >> (TERMS + 1)
    sine, power, n = 0, angle, 1
    while power:
        sine += power
        power = -power * angle // one * angle // one // ((n + 1) * (n + 2))
        power, n = (0 if abs(power) <= 1 else power), n + 2
    return str(sine << (TERMS + 1))[1 : 1 + places]


def _pi(one: int) -> int:
    """Machin: pi / 4 = 4 arctan(1/5) - arctan(1/239)."""
    return 4 * (4 * _arctan_of_inverse(5, one) - _arctan_of_inverse(239, one))


def _arctan_of_inverse(x: int, one: int) -> int:
    power, total, n = one // x, 0, 1
    while power:
        total += power // n * (1 if n % 4 == 1 else -1)
        power, n = power // (x * x), n + 2
    return total


@cache
def _checksum(number: int) -> int:
    return zlib.crc32(blob(number))


@cache
def _load(message: int) -> int:
    return sum(loads(message))
