"""Generates taxi trips in New York in RIoTBench's format; trip i is a formula of i.

Most trips begin and end at a few places, traffic is slower there, and one record in forty has no position, as in some
real records.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import cache

import numpy as np

from sluicegate.lab.apps.inputs.roads import ACROSS, SPACING_M, Metres, Numbers, degrees
from sluicegate.lab.apps.inputs.senml import record

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
