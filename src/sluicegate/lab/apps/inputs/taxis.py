"""Generates taxi trips in New York in RIoTBench's format; trip i is a formula of i.

Most trips begin and end at a few places, traffic is slower there, and one record in forty has no position, as in some
real records.

Trips follow a synthetic road network over New York. Crossings form a lattice with spacing ``SPACING_M``, each slightly
displaced; roads lead from each to the next one to the east and to the north. Road 2n goes east from crossing n, road 2n
+ 1 north.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache

import numpy as np

from sluicegate.lab.apps.inputs.senml import record

Metres = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
Truths = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
Numbers = np.ndarray[tuple[int, ...], np.dtype[np.int64]]

ACROSS = 48
SPACING_M = 500.0
WEST, SOUTH = -74.03, 40.63
_METRES_A_LON, _METRES_A_LAT = 84_300.0, 111_200.0
_MOVED_M = 100.0
_NEAR = np.arange(-2, 3)
"""Offsets of crossings whose roads may be the nearest; others are 900 m away, and the nearest is never that far."""


@dataclass(frozen=True, slots=True)
class Roads:
    """Start and extent of each road, east (``x``) and north (``y``)."""

    x: Metres
    y: Metres
    along_x: Metres
    along_y: Metres

    def some(self, numbers: Numbers) -> Roads:
        return Roads(self.x[numbers], self.y[numbers], self.along_x[numbers], self.along_y[numbers])

    def squared_m(self, x: Metres, y: Metres) -> Metres:
        """Squared distance to each road: to the foot of the perpendicular, or to the nearer end."""
        away_x, away_y = x - self.x, y - self.y
        foot = (away_x * self.along_x + away_y * self.along_y) / (self.along_x**2 + self.along_y**2)
        share = np.clip(foot, 0.0, 1.0)
        return (away_x - share * self.along_x) ** 2 + (away_y - share * self.along_y) ** 2


@cache
def all_roads() -> Roads:
    lattice = np.stack(np.meshgrid(np.arange(ACROSS + 1), np.arange(ACROSS + 1), indexing="ij"), axis=-1)
    at = lattice * SPACING_M + np.random.default_rng(42).uniform(-_MOVED_M, _MOVED_M, lattice.shape)
    begin = at[:-1, :-1]
    east, north = at[1:, :-1] - begin, at[:-1, 1:] - begin
    along = np.stack([east, north], axis=2).reshape(-1, 2)
    begins = np.repeat(begin.reshape(-1, 2), 2, axis=0)
    return Roads(begins[:, 0], begins[:, 1], along[:, 0], along[:, 1])


def metres(lon: Metres, lat: Metres) -> Metres:
    """Metres east and north of the map's corner."""
    return np.stack([(lon - WEST) * _METRES_A_LON, (lat - SOUTH) * _METRES_A_LAT], axis=-1)


def degrees(at: Metres) -> Metres:
    """Longitude and latitude."""
    return at / (_METRES_A_LON, _METRES_A_LAT) + (WEST, SOUTH)


def on_the_map(at: Metres) -> Truths:
    inside: Truths = (at >= 0) & (at < ACROSS * SPACING_M)
    return inside[:, 0] & inside[:, 1]


def nearest(at: Metres) -> Numbers:
    """The road nearest to each position, searched among nearby crossings only."""
    east, north = (np.clip(at[:, side, None] // SPACING_M + _NEAR, 0, ACROSS - 1).astype(np.int64) for side in (0, 1))
    crossings = (east[:, :, None] * ACROSS + north[:, None, :]).reshape(len(at), -1)
    near = (crossings[:, :, None] * 2 + np.arange(2)).reshape(len(at), -1)
    first = all_roads().some(near).squared_m(at[:, :1], at[:, 1:]).argmin(axis=1)
    return np.take_along_axis(near, first[:, None], axis=1)[:, 0]


def nearest_of_all(at: Metres) -> Numbers:
    """The same by checking every road."""
    return np.array([int(all_roads().squared_m(x, y).argmin()) for x, y in at], dtype=np.int64)


NEEDED = (
    "pickup_datetime",
    "trip_time_in_secs",
    "trip_distance",
    "pickup_longitude",
    "pickup_latitude",
    "dropoff_longitude",
    "dropoff_latitude",
)
_PLACES = 300
_ACROSS_M = ACROSS * SPACING_M
_BEGAN = datetime(2013, 1, 14)
_MS_APART = 500
_PRIME = 1_000_003


@cache
def _places() -> Metres:
    return np.random.default_rng(13).uniform(0.02 * _ACROSS_M, 0.98 * _ACROSS_M, (_PLACES, 2))


def _drawn(at: Numbers, salt: int) -> Metres:
    mixed = (at * 2654435761 + salt * 97_003 + 12345) % _PRIME
    return mixed * mixed % _PRIME / _PRIME


def trips(first: int, count: int) -> list[str]:
    at = np.arange(first, first + count, dtype=np.int64)
    place = [np.floor(_PLACES ** _drawn(at, salt)).astype(np.int64) - 1 for salt in (1, 2)]
    ends = [_places()[one] + _around(at, salt) for one, salt in zip(place, (3, 5), strict=True)]
    miles = np.abs(ends[0] - ends[1]).sum(axis=1) / 1609.344 + 0.05
    mph = 6.0 + 20.0 * _drawn(at, 7) * np.minimum(place[0] + place[1] + 40, 200) / 200
    seconds = np.ceil(miles / mph * 60).astype(np.int64) * 60
    began, ended = (degrees(end).tolist() for end in ends)
    return [_trip(*one) for one in zip(at.tolist(), began, ended, miles.tolist(), seconds.tolist(), strict=True)]


def _around(at: Numbers, salt: int) -> Metres:
    """Random offsets of up to 200 m, east-west and north-south."""
    return np.stack([400.0 * (_drawn(at, salt + side) - 0.5) for side in (0, 1)], axis=-1)


def _trip(number: int, pickup: list[float], dropoff: list[float], miles: float, seconds: int) -> str:
    began = _BEGAN + timedelta(milliseconds=number * _MS_APART)
    (lon, lat), (to_lon, to_lat) = ([0.0, 0.0], [0.0, 0.0]) if number % 40 == 7 else (pickup, dropoff)
    fare = 2.5 + 2.5 * miles
    return record(
        int((began - datetime(1970, 1, 1)).total_seconds() * 1000),
        [
            ("taxi_identifier", f"{number * 2654435761 % 13_437:032X}", "string"),
            ("hack_license", f"{number * 40503 % 32_203:032X}", "string"),
            ("pickup_datetime", f"{began:%Y-%m-%d %H:%M:%S}", "time"),
            ("trip_time_in_secs", str(seconds), "second"),
            ("trip_distance", f"{miles:.2f}", "meter"),
            ("pickup_longitude", f"{lon:.6f}", "lon"),
            ("pickup_latitude", f"{lat:.6f}", "lat"),
            ("dropoff_longitude", f"{to_lon:.6f}", "lon"),
            ("dropoff_latitude", f"{to_lat:.6f}", "lat"),
            ("payment_type", "CRD" if number % 2 else "CSH", "string"),
            ("fare_amount", f"{fare:.2f}", "dollar"),
            ("mta_tax", "0.50", "percentage"),
            ("total_amount", f"{fare + 0.5:.2f}", "dollar"),
        ],
    )
