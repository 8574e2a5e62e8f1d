"""Generates dirty lines of user behaviour: one in five is damaged, half of these beyond repair."""

from __future__ import annotations

import numpy as np

from sluicegate.lab.apps.inputs import user_behaviour
from sluicegate.lab.apps.inputs.draws import uniform


def lines_of(first: int, count: int) -> list[str]:
    """The lines of user behaviour from number ``first`` on, ten in fifty of them damaged."""
    at = np.arange(first, first + count, dtype=np.int64)
    spoils = np.floor(50 * uniform(at, 9)).astype(np.int64).tolist()
    whole = user_behaviour.lines_of(first, count)
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
