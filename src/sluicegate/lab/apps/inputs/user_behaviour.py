"""Generates user behaviour in a shop, one line per event: ``user,item,category,behaviour,seconds since 1970``.

The columns are those of Alibaba's user behaviour data set (Tianchi), which Es-Stream's applications use. Event i is a
formula of i with the shares of the data set: nine in ten events are views, there are fourteen a second, a few
categories have most of them and items are spread far more evenly.

Dirty lines are the same with one in five damaged, half of these beyond repair.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sluicegate.errors import BadInput
from sluicegate.lab.apps.inputs.draws import Whole, flatter, ranked, uniform
from sluicegate.lab.running.given import records_in

COLUMNS = ("user_id", "item_id", "category_id", "behavior", "unix_ts")
BEHAVIOURS = ("pv", "cart", "fav", "buy")
BEGAN_S = 1_511_658_000
"""26 November 2017, within the nine days of the data set."""
_UP_TO = (0.892, 0.947, 0.978)
"""Cumulative shares of the first behaviour, the first two, the first three."""
_PER_S = 14
_LATE_S = 5
"""An event arrives at most this many seconds after one with a later event time."""
_USERS, _CATEGORIES, _ITEMS = 60_000, 4_000, 1_000_000


def lines_of(first: int, count: int) -> list[str]:
    """The lines of the events numbered ``first`` on."""
    at = np.arange(first, first + count, dtype=np.int64)
    behaviours = np.searchsorted(_UP_TO, uniform(at, 1)).tolist()
    users = (1 + flatter(at, 2, _USERS) * 17).tolist()
    categories = (1000 + ranked(at, 3, _CATEGORIES) * 37).tolist()
    items = (1 + flatter(at, 4, _ITEMS) * 5).tolist()
    return [
        f"{user},{item},{category},{BEHAVIOURS[behaviour]},{at_s}"
        for user, item, category, behaviour, at_s in zip(
            users, items, categories, behaviours, times_of(at).tolist(), strict=True
        )
    ]


def times_of(at: Whole) -> Whole:
    """Event times: in the order of the numbers, except for up to ``_LATE_S`` seconds of disorder."""
    late: Whole = np.floor((_LATE_S + 1) * uniform(at, 5)).astype(np.int64)
    return BEGAN_S + at // _PER_S - late


def timed(lines: Sequence[str], path: Path) -> list[tuple[int, str]]:
    """Split every line into its time and the fields before it."""
    try:
        return [(int(at_s), before) for before, _, at_s in (line.rpartition(",") for line in lines)]
    except ValueError as problem:
        raise BadInput(f"{path}: {COLUMNS[-1]} must be whole seconds: {problem}") from problem


def lines_in_csv(path: Path) -> list[str]:
    """The lines of a file with the data set's columns in its header."""
    return [",".join(record[name] or "" for name in COLUMNS) for record in records_in(path, *COLUMNS)]


def dirty_lines_of(first: int, count: int) -> list[str]:
    """The lines of user behaviour from number ``first`` on, ten in fifty of them damaged."""
    at = np.arange(first, first + count, dtype=np.int64)
    spoils = np.floor(50 * uniform(at, 9)).astype(np.int64).tolist()
    whole = lines_of(first, count)
    return [spoilt(line, spoil) for line, spoil in zip(whole, spoils, strict=True)]


def spoilt(line: str, how: int) -> str:
    """Damage a line in one of ten ways, of which the first five can be repaired; unchanged for ``how`` from 10 on.

    >>> [spoilt("1,2,3,pv,1511658000", how) for how in (1, 5, 10)]
    ['1,2,3, PV ,1511658000', '1,2,3,p', '1,2,3,pv,1511658000']
    """
    user, item, category, behaviour, at = line.split(",")
    ways = {
        0: f"{user};{item};{category};{behaviour};{at}",
        1: f"{user},{item},{category}, {behaviour.upper()} ,{at}",
        2: f"{user},{item},{category},{behaviour},{at}000",
        3: f"{user},{item},,{behaviour},{at}",
        4: f" {user}\t{item}\t{category}\t{behaviour}\t{at} ",
        5: line[: len(f"{user},{item},{category},") + 1],
        6: f"{user},{item},{category},click,{at}",
        7: f"guest,{item},{category},{behaviour},{at}",
        8: f"{user},{item},{category},{behaviour},0",
        9: f"{user},{item},{category},{behaviour},{at},{at}",
    }
    return ways.get(how, line)
