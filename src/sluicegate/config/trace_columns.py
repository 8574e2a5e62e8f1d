"""Which column of a trace holds the time and which the load, from the header and the first rows.

The time is the column of dates, else a number column whose name says time (``minute``, ``ts``, ``unix``), else one that
rises like a clock: by the same amount from row to row, or through seconds since 1970. The load is the one asked for,
else the largest number column that does not count the rows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from itertools import pairwise
from typing import Literal

from sluicegate.errors import BadInput

Rows = Sequence[Sequence[str]]
TimeKind = Literal["date", "number", "none"]

_TIME_WORDS = {
    "time": 1.0,
    "timestamp": 1.0,
    "datetime": 1.0,
    "date": 1.0,
    "ts": 1.0,
    "unix": 1.0,
    "epoch": 1.0,
    "second": 1.0,
    "seconds": 1.0,
    "sec": 1.0,
    "ms": 1e-3,
    "millis": 1e-3,
    "minute": 60.0,
    "minutes": 60.0,
    "min": 60.0,
    "hour": 3600.0,
    "hours": 3600.0,
    "index": 60.0,
    "step": 60.0,
}
# Numbers since 1970 above these are no seconds, milliseconds or microseconds: they would lie beyond the year 5000.
_FINER = ((1e17, 1e-9), (1e14, 1e-6), (1e11, 1e-3))
_EPOCH = 3e8  # 1979 in seconds since 1970: rising numbers above it are times, loads are hardly ever
_OTHER_DATE = re.compile(r"\b\d{1,2}[/.-]\d{1,2}[/.-]\d{4}\b|\b\d{4}[/.]\d{1,2}[/.]\d{1,2}\b|\b\d{1,2}:\d{2}\b")
_REGULAR = 0.9  # share of steps that are alike where a column is a clock; the others are gaps


@dataclass(frozen=True, slots=True)
class Columns:
    """Positions in a row. ``time_unit_s`` is what one unit of a number column of times is worth."""

    names: tuple[str, ...]
    load: int
    time: int | None
    kind: TimeKind
    time_unit_s: float = 60.0
    by_values: bool = False  # the time column was recognised by its values alone

    @property
    def load_name(self) -> str:
        return self.names[self.load]

    @property
    def time_name(self) -> str | None:
        return None if self.time is None else self.names[self.time]


def find_columns(names: tuple[str, ...], rows: Rows, wanted: str | None = None) -> Columns:
    """The columns to read, found by some first rows; ``wanted`` is the load's name or its number from 1.

    >>> find_columns(("minute", "sent", "at"), [["0", "44", "1995-08-28T00:00:00"], ["1", "9", "1995-08-28T00:01:00"]])
    Columns(names=('minute', 'sent', 'at'), load=1, time=2, kind='date', time_unit_s=1.0, by_values=False)
    """
    numbers = [i for i in range(len(names)) if all(_is_number(row[i]) for row in rows)]
    dates = [i for i in range(len(names)) if i not in numbers and all(seconds_of(row[i]) is not None for row in rows)]
    load = None if wanted is None else _asked(names, wanted)
    clocks = [i for i in numbers if _unit(names[i]) is not None and i != load]
    by_values = not (clocks or dates) and len(numbers) > 1
    if by_values:
        clocks = _by_values(rows, [i for i in numbers if i != load])
    if load is None:
        load = _guessed(names, rows, [i for i in numbers if i not in clocks])
    if dates and dates[0] != load:
        return Columns(names, load, dates[0], "date", 1.0)
    if not clocks:
        _refuse_other_dates(names, rows, [i for i in range(len(names)) if i not in numbers and i != load])
        return Columns(names, load, None, "none")
    largest = max(abs(float(row[clocks[0]])) for row in rows)
    unit = _unit(names[clocks[0]]) or 1.0
    if unit == 1.0:
        unit = next((finer for above, finer in _FINER if largest > above), unit)
    return Columns(names, load, clocks[0], "number", unit, by_values)


def seconds_of(text: str) -> float | None:
    """Seconds since 1970 of an ISO date, with or without an offset (then as UTC); ``None`` if it is none.

    >>> seconds_of("1970-01-01T00:01:00Z"), seconds_of("1970-01-01 00:01:00+00:01"), seconds_of("noon")
    (60.0, 0.0, None)
    """
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _refuse_other_dates(names: tuple[str, ...], rows: Rows, texts: Sequence[int]) -> None:
    """Raise for dates that are not ISO: 03/04/2024 may be March or April, and one row a minute would be a guess."""
    for i in texts:
        if all(_OTHER_DATE.search(row[i]) for row in rows):
            raise BadInput(
                f"column {names[i]!r} holds times like {rows[0][i].strip()[:40]!r}, which are not ISO dates: write "
                "2024-03-01T00:00:00, or remove the column, a row is then a minute"
            )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _unit(name: str) -> float | None:
    words = [word for word in re.split(r"[^a-z]+", name.lower()) if word]
    if "per" in words:  # requests_per_min is a load
        return None
    return next((_TIME_WORDS[word] for word in words if word in _TIME_WORDS), None)


def _asked(names: tuple[str, ...], wanted: str) -> int:
    if wanted in names:
        return names.index(wanted)
    if wanted.isascii() and wanted.isdigit() and 1 <= int(wanted) <= len(names):
        return int(wanted) - 1
    close = get_close_matches(wanted, names, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    raise BadInput(f"no column {wanted!r}: {hint}there are {', '.join(names)}")


def _guessed(names: tuple[str, ...], rows: Rows, numbers: list[int]) -> int:
    if not numbers:
        raise BadInput(f"no column of numbers to take for the load among {', '.join(names)}: name one with --column")
    loads = [i for i in numbers if not _counts_rows(rows, i)] or numbers
    return max(loads, key=lambda i: sum(abs(float(row[i])) for row in rows))


def _by_values(rows: Rows, numbers: list[int]) -> list[int]:
    """The first column whose values can only be times, if any; if a column counts the rows, a ramp may be the load."""
    counted = any(_counts_rows(rows, i) and not _since_1970(rows, i) for i in numbers)
    return [i for i in numbers if _rises(rows, i) and (_since_1970(rows, i) or not counted)][:1]


def _rises(rows: Rows, i: int) -> bool:
    steps = sorted(float(b[i]) - float(a[i]) for a, b in pairwise(rows))
    if len(steps) < 2 or not steps[0] > 0:
        return False
    alike = sum(step == steps[len(steps) // 2] for step in steps)
    return alike >= _REGULAR * len(steps) or _since_1970(rows, i)


def _since_1970(rows: Rows, i: int) -> bool:
    return float(rows[0][i]) > _EPOCH


def _counts_rows(rows: Rows, i: int) -> bool:
    return len(rows) > 2 and all(float(b[i]) - float(a[i]) == 1.0 for a, b in pairwise(rows))
