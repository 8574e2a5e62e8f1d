"""Nexmark's events: people register, open auctions, and bid; event ``i`` is a formula of ``i``.

Of every 50 events one is a person, three are auctions, 46 are bids. Most auctions are of hot sellers, most bids come
from hot bidders, half of them go to hot auctions; the others spread over those of late, and a few name a person or an
auction that is yet to come. An event each 10 ms; every tenth arrives up to half a second late, so event times are out
of order. Times are milliseconds since 1970.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

EPOCH, PEOPLE, AUCTIONS = 50, 1, 3
EVERY_MS = 10
MOST_LATE_MS = 500
FIRST_ID = 1000
FIRST_CATEGORY, CATEGORIES = 10, 5
MOST_OPEN_MS = 20_000
"""No auction is open for longer."""

_START_MS = 1_767_225_600_000
_ACTIVE_PEOPLE, _OPEN_AUCTIONS, _AHEAD = 1000, 100, 10
_HOT_EVERY = 100
_FIRST_NAMES = ("Ada", "Bruno", "Clara", "Deshi", "Elena", "Farid", "Grace", "Henrik", "Ines", "Jun", "Kofi")
_LAST_NAMES = ("Abara", "Bauer", "Costa", "Duarte", "Eriksen", "Fujita", "Garcia", "Haddad", "Ivanova")
_CITIES = (
    ("Phoenix", "AZ"),
    ("Los Angeles", "CA"),
    ("San Francisco", "CA"),
    ("Boise", "ID"),
    ("Portland", "OR"),
    ("Bend", "OR"),
    ("Redmond", "WA"),
    ("Seattle", "WA"),
    ("Kent", "WA"),
    ("Cheyenne", "WY"),
)


@dataclass(frozen=True, slots=True)
class Person:
    id: int
    name: str
    city: str
    state: str
    ts: int
    extra: str


@dataclass(frozen=True, slots=True)
class Auction:
    id: int
    seller: int
    category: int
    initial_bid: int
    reserve: int
    ts: int
    expires: int
    extra: str


@dataclass(frozen=True, slots=True)
class Bid:
    auction: int
    bidder: int
    price: int
    ts: int
    extra: str


Event = Person | Auction | Bid
KINDS: dict[str, type[Event]] = {"person": Person, "auction": Auction, "bid": Bid}
"""Folder of each kind of event."""


def event(i: int) -> Event:
    """Event ``i``.

    >>> [type(event(i)).__name__ for i in (0, 1, 3, 4, 49, 50)]
    ['Person', 'Auction', 'Auction', 'Bid', 'Bid', 'Person']
    >>> event(50).id, event(51).id
    (1001, 1003)
    """
    offset = i % EPOCH
    if offset < PEOPLE:
        return _person(i)
    return _auction(i) if offset < PEOPLE + AUCTIONS else _bid(i)


def events(count: int) -> list[Event]:
    return [event(i) for i in range(count)]


def write(folder: Path, count: int, per_file: int) -> None:
    """A folder a kind with a Parquet file for every ``per_file`` events: one file of each is one micro-batch."""
    for kind in KINDS:
        (folder / kind).mkdir(parents=True)
    for number, start in enumerate(range(0, count, per_file)):
        part = [event(i) for i in range(start, min(start + per_file, count))]
        for kind, made in KINDS.items():
            path = folder / kind / f"{number:06d}.parquet"
            pq.write_table(_table([one for one in part if isinstance(one, made)], made), path)
            os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))  # Spark takes the oldest file first


def _person(i: int) -> Person:
    city, state = _CITIES[_draw(i, 1, len(_CITIES))]
    name = f"{_FIRST_NAMES[_draw(i, 2, len(_FIRST_NAMES))]} {_LAST_NAMES[_draw(i, 3, len(_LAST_NAMES))]}"
    return Person(FIRST_ID + i // EPOCH, name, city, state, _ts(i), _padding(i, 8))


def _auction(i: int) -> Auction:
    ts, initial = _ts(i), _price(i, 1)
    return Auction(
        id=FIRST_ID + i // EPOCH * AUCTIONS + i % EPOCH - PEOPLE,
        seller=_a_person(i, hot=0),
        category=FIRST_CATEGORY + _draw(i, 5, CATEGORIES),
        initial_bid=initial,
        reserve=initial + _price(i, 6),
        ts=ts,
        expires=ts + 1 + _draw(i, 7, MOST_OPEN_MS),
        extra=_padding(i, 24),
    )


def _bid(i: int) -> Bid:
    newest = i // EPOCH * AUCTIONS + AUCTIONS - 1
    oldest = max(newest - _OPEN_AUCTIONS, 0)
    if _draw(i, 4, 2):
        auction = newest // _HOT_EVERY * _HOT_EVERY
    else:
        auction = oldest + _draw(i, 5, newest - oldest + 1 + _AHEAD)
    return Bid(FIRST_ID + auction, _a_person(i, hot=1), _price(i, 1), _ts(i), _padding(i, 4))


def _a_person(i: int, hot: int) -> int:
    """Three times of four the hot one among the last hundred; hot sellers are not hot bidders."""
    newest = i // EPOCH
    if _draw(i, 8, 4):
        return FIRST_ID + newest // _HOT_EVERY * _HOT_EVERY + hot
    active = min(newest + 1, _ACTIVE_PEOPLE)
    return FIRST_ID + newest + 1 - active + _draw(i, 9, active + _AHEAD)


def _price(i: int, what: int) -> int:
    """From 100 to a hundred million, evenly in orders of magnitude."""
    return round(100 * 10 ** (6 * _draw(i, 10 + what, 1 << 32) / (1 << 32)))


def _ts(i: int) -> int:
    late = _draw(i, 21, MOST_LATE_MS) if _draw(i, 20, 10) == 0 else 0
    return _START_MS + i * EVERY_MS - late


def _padding(i: int, words: int) -> str:
    """Text that brings an event to about Nexmark's size."""
    return f"{_hash(i, 30):016x}" * words


def _draw(i: int, what: int, below: int) -> int:
    return _hash(i, what) % below


def _hash(i: int, what: int) -> int:
    """SplitMix64's finish: evenly spread, and the same on every machine."""
    z = (i * 64 + what + 1) * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & 0xFFFFFFFFFFFFFFFF
    z = (z ^ z >> 27) * 0x94D049BB133111EB & 0xFFFFFFFFFFFFFFFF
    return z ^ z >> 31


def _table(part: list[Event], made: type[Event]) -> pa.Table:
    return pa.table(dict(_columns(part, made)))


def _columns(part: list[Event], made: type[Event]) -> Iterator[tuple[str, pa.Array[Any]]]:
    for field in fields(made):
        values = [getattr(one, field.name) for one in part]
        if field.name in ("ts", "expires"):
            yield (
                field.name,
                pa.array(values, pa.int64()).cast(pa.timestamp("ms", tz="UTC")).cast(pa.timestamp("us", tz="UTC")),
            )
        else:
            yield field.name, pa.array(values, pa.string() if field.type == "str" else pa.int64())
