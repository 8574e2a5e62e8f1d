"""Capacity files: what a number of machines was measured to sustain, as TOML.

[[points]]
machines = 3
rate_per_s = 5200.0
sd_per_s = 260.0        # of one draw; 5% of the rate where it is not given
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from sluicegate.config.table import Table, read_toml
from sluicegate.domain.topology import require, require_number
from sluicegate.errors import BadInput

_RSD = 0.05
_MOST_MACHINES = 100_000


def read_capacity(path: Path) -> tuple[tuple[int, float, float], ...]:
    """(machines, rows/s, deviation of one draw) by rising size; every mistake is one line that says where."""
    table = read_toml(path)
    points = sorted(_point(entry) for entry in table.tables("points"))
    table.refuse_unknown()
    if not points:
        table.fail("points is empty: add at least one [[points]] table")
    for (one, _, _), (other, _, _) in pairwise(points):
        if one == other:
            table.fail(f"{one} machines are there twice: keep one of the two")
    return tuple(points)


def _point(entry: Table) -> tuple[int, float, float]:
    machines, rate = entry.count("machines"), entry.number("rate_per_s")
    sd = entry.number("sd_per_s", _RSD * rate)
    entry.refuse_unknown()
    try:
        require(1 <= machines <= _MOST_MACHINES, f"machines is {machines}: give 1 to {_MOST_MACHINES}")
        require_number(rate, "rate_per_s", above=True)
        require_number(sd, "sd_per_s")
    except BadInput as problem:
        entry.fail(str(problem))
    return machines, rate, sd
