"""SenML sensor records in RIoTBench's format: ``milliseconds,{"e":[{"n":"load","v":"7.5","u":"watt"}, ...]}``.

``v`` is a number, ``sv`` is a text, and both are quoted. There are two readers: in Spark for the pipelines, and in
plain Python for the answers they are checked against.

The generated records are those of the smart plugs of forty houses; reading i is a formula of i. Plugs report in turn.
Some houses have far more plugs than others. A plug draws about its nominal load; now and then one draws far too much
for a minute, and one reading in sixty is broken.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from sluicegate.errors import BadInput
from sluicegate.lab.running.given import lines_in

_SCHEMA = "e array<struct<n:string,v:string,sv:string>>"
Field = tuple[str, str, str]
"""Name, value and unit; the units "string", "time", "lon" and "lat" make a text."""
_TEXTS = ("string", "time", "lon", "lat")


def told(lines: DataFrame, *names: str) -> DataFrame:
    """The time and the named values, as text, of records in a column ``line``; null if a record lacks them."""
    read = lines.select(
        F.expr("try_cast(substring_index(line, ',', 1) as long)").alias("at_ms"),
        F.from_json(F.substr("line", F.locate(",", "line") + 1), _SCHEMA)["e"].alias("fields"),
    )
    return read.select("at_ms", *(_value(name).alias(name) for name in names))


def _value(name: str) -> Column:
    one = F.get(F.filter("fields", lambda field: field["n"] == name), F.lit(0))
    return F.coalesce(one["v"], one["sv"])


def fields_of(line: str) -> dict[str, str]:
    """
    >>> fields_of('1000,{"e":[{"n":"plug","sv":"p1","u":"string"},{"n":"load","v":"7.5","u":"watt"}],"bt":1000}')
    {'load': '7.5', 'plug': 'p1'}
    """
    try:
        read = json.loads(line.partition(",")[2])["e"]
        return {one["n"]: one.get("v", one.get("sv")) for one in reversed(read)}
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}


def record(at_ms: int, told: Iterable[Field]) -> str:
    """
    >>> record(1000, [("plug", "p1", "string"), ("load", "7.5", "watt")])
    '1000,{"e":[{"u":"string","n":"plug","sv":"p1"},{"v":"7.5","u":"watt","n":"load"}],"bt":1000}'
    """
    each = ",".join(
        f'{{"u":"{unit}","n":"{name}","sv":"{value}"}}'
        if unit in _TEXTS
        else f'{{"v":"{value}","u":"{unit}","n":"{name}"}}'
        for name, value, unit in told
    )
    return f'{at_ms},{{"e":[{each}],"bt":{at_ms}}}'


def records_in(path: Path, *names: str) -> list[str]:
    """The lines of a file; its first record must have all of ``names``."""
    lines = lines_in(path)
    missing = [name for name in names if name not in fields_of(lines[0])]
    if missing:
        raise BadInput(f'{path} is not SenML with {missing[0]!r}: give lines as milliseconds,{{"e":[{{"n":...}}]}}')
    return lines


_PLUGS = [f"h{house:02d}-p{plug:02d}" for house in range(40) for plug in range(4 + 160 // (house + 10))]
_BEGAN_MS = 1_377_986_400_000
_MS_APART = 25
_PRIME = 1_000_003


def readings(first: int, count: int) -> list[str]:
    at = np.arange(first, first + count, dtype=np.int64)
    plug, minute = at % len(_PLUGS), at * _MS_APART // 60_000
    mixed = (at * 2654435761 + 12345) % _PRIME
    usual = 20_000 + plug * 7919 % 60_000
    hot = (plug * 31 + minute * 17) % 97 == 0
    milliwatts = usual * (80 + mixed % 41) // 100 * np.where(hot, 9, 1)
    drawn = np.where(mixed % 60 == 0, -1000, milliwatts)
    return [_record(*one) for one in zip(at.tolist(), plug.tolist(), drawn.tolist(), strict=True)]


def _record(number: int, plug: int, milliwatts: int) -> str:
    at_ms = _BEGAN_MS + number * _MS_APART
    watts = f"{'-' if milliwatts < 0 else ''}{abs(milliwatts) // 1000}.{abs(milliwatts) % 1000:03d}"
    who = ("house", _PLUGS[plug].partition("-")[0], "string"), ("plug", _PLUGS[plug], "string")
    return record(at_ms, [*who, ("load", watts, "watt"), ("work", str(number // len(_PLUGS)), "kWh")])
