"""Generates ADS-B messages of aircraft over the North Sea; message i is a formula of i.

Each aircraft flies straight at its own speed and turns back at the border of the region. Some are received far more
often than others. One message in five has a name instead of a position.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from sluicegate.errors import BadInput
from sluicegate.lab.apps.inputs.adsb import name_message, position_message
from sluicegate.lab.apps.turns import Turns, zipf_round
from sluicegate.lab.running.given import Records, records_in

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
