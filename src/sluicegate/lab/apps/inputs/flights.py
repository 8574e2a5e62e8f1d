"""Generates ADS-B messages of aircraft over the North Sea; message i is a formula of i. Encodes and decodes them.

Each aircraft flies straight at its own speed and turns back at the border of the region. Some are received far more
often than others. One message in five has a name instead of a position.

Positions are airborne ones with barometric altitude (DF 17). A message is 112 bits: 8 for the format, 24 for the
aircraft, 56 for the content, 24 for parity. A position has latitude and longitude within zones only (compact position
reporting), 17 bits each. Even and odd messages use zones of different size, 60 and 59 around the globe, so the two
together determine the zone:

    j = floor(59 y_even - 60 y_odd + 1/2),   latitude = 360/60 (j mod 60 + y_even)   or  360/59 (j mod 59 + y_odd)
    m = floor(x_even (n - 1) - x_odd n + 1/2),   longitude = 360/n_i (m mod n_i + x),   n = NL(latitude)

as in ICAO's Annex 10, volume IV. NL is the number of zones in longitude at a latitude.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from sluicegate.errors import BadInput
from sluicegate.lab.apps.turns import Turns, zipf_round
from sluicegate.lab.running.given import Records, records_in

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


_AIRCRAFT = 60
_HEARD_PER_S = 50
_BEGAN_S = 1_502_582_400
_PAUSE_S = 3600
"""Pause between the end of a file and its repetition; longer than the silence that ends a track."""
_CORNER, _REGION = np.array([51.0, 2.0]), np.array([4.0, 6.0])
_TURNS = Turns(zipf_round([f"{0x400000 + number * 4001:06X}" for number in range(_AIRCRAFT)], 600))


@dataclass(frozen=True, slots=True)
class Heard:
    """A message with its time, aircraft, and turn (the number of earlier messages of the aircraft)."""

    at_s: int
    message: str
    icao24: str
    turn: int


@cache
def _course(icao24: str) -> tuple[np.ndarray[tuple[int], np.dtype[np.float64]], ...]:
    """Start and distance per second of an aircraft, in degrees of latitude and longitude."""
    dice = np.random.default_rng(int(icao24, 16))
    heading, metres_per_s = dice.uniform(0, 2 * np.pi), dice.uniform(180, 260)
    speed = metres_per_s * np.array([np.cos(heading) / 111_200, np.sin(heading) / 66_700])
    return dice.uniform(0, 2, 2) * _REGION, speed


def messages(first: int, count: int) -> list[Heard]:
    return [_heard(number, *_TURNS.of(number)) for number in range(first, first + count)]


def _heard(number: int, icao24: str, turn: int) -> Heard:
    began, speed = _course(icao24)
    lat, lon = (_CORNER + np.abs((began + speed * (number / _HEARD_PER_S)) % (2 * _REGION) - _REGION)).tolist()
    told = name_message(icao24) if turn % 5 == 4 else position_message(icao24, lat, lon, odd=turn % 2 == 1)
    return Heard(_BEGAN_S + number // _HEARD_PER_S, told, icao24, turn)


def heard_in(path: Path) -> Records[Heard]:
    """The messages of a file, repeated with later times in each round."""
    records = records_in(path, "unix_ts", "adsb_hex", "icao24")
    try:
        times = [int(record["unix_ts"]) for record in records]
    except ValueError as problem:
        raise BadInput(f"{path}: unix_ts must be whole seconds: {problem}") from None
    turns, a_round_s = Turns([record["icao24"] for record in records]), max(times) - min(times) + _PAUSE_S

    def heard(number: int) -> Heard:
        rounds, at = divmod(number, len(records))
        return Heard(times[at] + rounds * a_round_s, records[at]["adsb_hex"], *turns.of(number))

    return lambda first, count: [heard(number) for number in range(first, first + count)]
