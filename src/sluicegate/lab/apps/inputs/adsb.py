"""Encodes and decodes ADS-B position messages of aircraft (DF 17, airborne positions with barometric altitude).

A message is 112 bits: 8 for the format, 24 for the aircraft, 56 for the content, 24 for parity. A position has latitude
and longitude within zones only (compact position reporting), 17 bits each. Even and odd messages use zones of different
size, 60 and 59 around the globe, so the two together determine the zone:

    j = floor(59 y_even - 60 y_odd + 1/2),   latitude = 360/60 (j mod 60 + y_even)   or  360/59 (j mod 59 + y_odd)
    m = floor(x_even (n - 1) - x_odd n + 1/2),   longitude = 360/n_i (m mod n_i + x),   n = NL(latitude)

as in ICAO's Annex 10, volume IV. NL is the number of zones in longitude at a latitude.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

_SPAN = 1 << 17
_PARITY = 0x1FFF409
_FORMAT = 0x8D
_POSITIONS = range(9, 19)
_PARITY_BITS = 24
_POSITION_CODE, _NAME_CODE = 11, 4


@dataclass(frozen=True, slots=True)
class Position:
    """The position in one message: latitude and longitude as shares of a zone, in 1/2^17."""

    odd: bool
    lat: int
    lon: int


def parity(bits: int) -> int:
    """The parity remainder of a whole message; 0 if it is intact."""
    for at in range(111, 23, -1):
        if bits >> at & 1:
            bits ^= _PARITY << (at - 24)
    return bits


def position(message: str) -> Position | None:
    """
    >>> position("8D40621D58C382D690C8AC2863A7")
    Position(odd=False, lat=93000, lon=51372)
    """
    try:
        bits = int(message, 16)
    except ValueError:
        return None
    told = bits >> _PARITY_BITS & (1 << 56) - 1
    if len(message) != 28 or bits >> 104 != _FORMAT or told >> 51 not in _POSITIONS or parity(bits):
        return None
    return Position(bool(told >> 34 & 1), told >> 17 & _SPAN - 1, told & _SPAN - 1)


def zones(lat: float) -> int:
    """
    >>> zones(0.0), zones(52.25), zones(88.0)
    (59, 36, 1)
    """
    if abs(lat) >= 87.0:
        return 1
    wide = (1 - math.cos(math.pi / 30)) / math.cos(math.radians(lat)) ** 2
    return math.floor(2 * math.pi / math.acos(1 - wide))


def fix(even: Position, odd: Position, odd_is_later: bool) -> tuple[float, float] | None:
    """Latitude and longitude at the later of two messages; ``None`` if they are in different zones.

    >>> messages = "8D40621D58C382D690C8AC2863A7", "8D40621D58C386435CC412692AD6"
    >>> even, odd = (one for message in messages if (one := position(message)))
    >>> lat, lon = fix(even, odd, odd_is_later=False) or (0.0, 0.0)
    >>> round(lat, 5), round(lon, 5)
    (52.2572, 3.91937)
    """
    y_even, y_odd, x_even, x_odd = (part / _SPAN for part in (even.lat, odd.lat, even.lon, odd.lon))
    j = math.floor(59 * y_even - 60 * y_odd + 0.5)
    lat_even, lat_odd = _around(360 / 60 * (j % 60 + y_even)), _around(360 / 59 * (j % 59 + y_odd))
    if zones(lat_even) != zones(lat_odd):
        return None
    lat, x = (lat_odd, x_odd) if odd_is_later else (lat_even, x_even)
    m = math.floor(x_even * (zones(lat) - 1) - x_odd * zones(lat) + 0.5)
    across = max(zones(lat) - odd_is_later, 1)
    return lat, _around(360 / across * (m % across + x))


def _around(degrees: float) -> float:
    return degrees - 360 if degrees >= 180 else degrees


def position_message(icao24: str, lat: float, lon: float, odd: bool) -> str:
    """
    >>> position_message("40621D", 52.2572, 3.91937, odd=False)
    '8D40621D58C382D690C8AC2863A7'
    """
    tall = 360 / (60 - odd)
    y = math.floor(_SPAN * (lat % tall) / tall + 0.5)
    wide = 360 / max(zones(tall * (y / _SPAN + lat // tall)) - odd, 1)
    x = math.floor(_SPAN * (lon % wide) / wide + 0.5)
    altitude = 0xC38
    return _message(icao24, _POSITION_CODE << 51 | altitude << 36 | odd << 34 | y % _SPAN << 17 | x % _SPAN)


def name_message(icao24: str) -> str:
    """An identification message, without a position."""
    return _message(icao24, _NAME_CODE << 51)


def _message(icao24: str, told: int) -> str:
    bits = _FORMAT << 104 | int(icao24, 16) << 80 | told << _PARITY_BITS
    return f"{bits | parity(bits):028X}"
