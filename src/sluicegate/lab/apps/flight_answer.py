"""The right answer of flight_distances, computed independently of its operators.

Messages are decoded as strings of bits, parity is checked byte by byte, the number of zones is looked up in a table of
the latitudes at which it changes, and distances are chords through the globe, converted to arcs.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable

from sluicegate.lab.apps.inputs.flights import Heard

Fix = tuple[str, int, int, int, int, int]
"""Aircraft, turn, time, millionths of a degree of latitude and longitude, metres flown."""
_EARTH_M = 6_371_008.8
_GENERATOR = 0xFFF409
_BORDERS = sorted(
    math.degrees(math.acos(math.sqrt((1 - math.cos(math.pi / 30)) / (1 - math.cos(2 * math.pi / n)))))
    for n in range(2, 60)
)
"""The latitudes at which the number of zones drops by one, from 59 at the equator; above 87 degrees it is 1."""


def _remainder_of(byte: int) -> int:
    rest = byte << 16
    for _ in range(8):
        rest = (rest << 1) ^ (_GENERATOR if rest & 0x800000 else 0)
    return rest & 0xFFFFFF


_REMAINDERS = [_remainder_of(byte) for byte in range(256)]


def whole(message: bytes) -> bool:
    """Whether a message of 14 bytes is intact: its last three bytes are the remainder of the others.

    >>> whole(bytes.fromhex("8D40621D58C382D690C8AC2863A7")), whole(bytes.fromhex("8D40621D58C382D690C8AC2863A6"))
    (True, False)
    """
    rest = 0
    for byte in message[:11]:
        rest = (rest << 8 & 0xFFFFFF) ^ _REMAINDERS[rest >> 16 ^ byte]
    return rest == int.from_bytes(message[11:], "big")


def shares_of(text: str) -> tuple[int, float, float] | None:
    """Parity bit (1 odd), latitude and longitude as shares of a zone; ``None`` if the message has no position.

    >>> shares_of("8D40621D58C386435CC412692AD6")
    (1, 0.5657806396484375, 0.3829498291015625)
    """
    try:
        message = bytes.fromhex(text)
    except ValueError:
        return None
    if len(message) != 14 or message[0] != 0x8D or not 9 <= message[4] >> 3 <= 18 or not whole(message):
        return None
    bits = f"{int.from_bytes(message[4:11], 'big'):056b}"
    return int(bits[21]), int(bits[22:39], 2) / 131072, int(bits[39:56], 2) / 131072


def zones_at(lat: float) -> int:
    """
    >>> zones_at(0.0), zones_at(52.25), zones_at(-88.0)
    (59, 36, 1)
    """
    return 59 - bisect_right(_BORDERS, abs(lat)) if abs(lat) < 87 else 1


def place_of(even: tuple[float, float], odd: tuple[float, float], newest: int) -> tuple[int, int] | None:
    """Position in millionths of a degree from both messages, at the time of the newest (0 even, 1 odd)."""
    band = math.floor(59 * even[0] - 60 * odd[0] + 0.5)
    lats = [_signed(360 / (60 - one) * (band % (60 - one) + share)) for one, share in ((0, even[0]), (1, odd[0]))]
    zones = zones_at(lats[0])
    if zones != zones_at(lats[1]):
        return None
    column = math.floor(even[1] * (zones - 1) - odd[1] * zones + 0.5)
    across = zones - newest if zones > newest else 1
    lon = _signed(360 / across * (column % across + (even, odd)[newest][1]))
    return round(lats[newest] * 1e6), round(lon * 1e6)


def _signed(degrees: float) -> float:
    return degrees if degrees < 180 else degrees - 360


def arc_m(one: tuple[int, int], other: tuple[int, int]) -> float:
    """
    >>> round(arc_m((52_000_000, 4_000_000), (53_000_000, 4_000_000)))
    111195
    """
    return 2 * _EARTH_M * math.asin(math.dist(_on_the_globe(one), _on_the_globe(other)) / 2)


def _on_the_globe(place: tuple[int, int]) -> tuple[float, float, float]:
    lat, lon = math.radians(place[0] / 1e6), math.radians(place[1] / 1e6)
    return math.cos(lat) * math.cos(lon), math.cos(lat) * math.sin(lon), math.sin(lat)


def all_fixes(messages: Iterable[Heard]) -> list[Fix]:
    """Every position of every aircraft; messages must be in the order of their turns."""
    newest: defaultdict[str, dict[int, tuple[int, float, float]]] = defaultdict(dict)
    last: dict[str, tuple[int, tuple[int, int]]] = {}
    flown: defaultdict[str, int] = defaultdict(int)
    found: list[Fix] = []
    for one in messages:
        told = shares_of(one.message)
        if told is None:
            continue
        heard = newest[one.icao24]
        heard[told[0]] = (one.at_s, told[1], told[2])
        if len(heard) < 2 or abs(heard[0][0] - heard[1][0]) > 10:
            continue
        place = place_of(heard[0][1:], heard[1][1:], told[0])
        if place is None:
            continue
        before = last.get(one.icao24)
        if before is not None and one.at_s - before[0] <= 300:
            flown[one.icao24] += round(arc_m(before[1], place))
        last[one.icao24] = one.at_s, place
        found.append((one.icao24, one.turn, one.at_s, *place, flown[one.icao24]))
    return found


def all_pairs(fixes: Iterable[Fix], every_s: int, near_m: float) -> dict[object, tuple[int, object]]:
    """For each interval, the number of positions, and the aircraft near each other by their last positions."""
    times: defaultdict[int, list[Fix]] = defaultdict(list)
    for fix in fixes:
        times[fix[2] - fix[2] % every_s].append(fix)
    return {since_s: (len(some), _near(some, near_m)) for since_s, some in times.items()}


def _near(fixes: list[Fix], near_m: float) -> str:
    where = {icao24: (lat, lon) for icao24, _, _, lat, lon, _ in sorted(fixes, key=lambda fix: fix[1])}
    names = sorted(where)
    return " ".join(
        f"{a}-{b}" for n, a in enumerate(names) for b in names[n + 1 :] if arc_m(where[a], where[b]) < near_m
    )
