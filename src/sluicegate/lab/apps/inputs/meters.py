"""The smart plugs of forty houses, as SenML records; reading i is a formula of i.

Plugs report in turn. Some houses have far more plugs than others. A plug draws about its nominal load; now and then
one draws far too much for a minute, and one reading in sixty is broken.
"""

from __future__ import annotations

import numpy as np

from sluicegate.lab.apps.inputs.senml import record

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
