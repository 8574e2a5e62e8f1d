"""Real input instead of generated rows: the records of a file, cycled so that a run can have any length."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from sluicegate.errors import BadInput

T = TypeVar("T")
Records = Callable[[int, int], list[T]]
"""Maps (number of the first record, count) to records, from a generator or a file."""


def cycled(records: Sequence[T]) -> Records[T]:
    """Repeat the records: record i is the one at i modulo their number.

    >>> cycled(["a", "b", "c"])(2, 4)
    ['c', 'a', 'b', 'c']
    """
    return lambda first, count: [records[at % len(records)] for at in range(first, first + count)]


def lines_in(path: Path) -> list[str]:
    """The non-blank lines of a text file."""
    try:
        found = [line for line in path.read_text("utf-8", errors="replace").splitlines() if line.strip()]
    except OSError as problem:
        raise BadInput(f"cannot read {path}: {problem.strerror}") from problem
    if not found:
        raise BadInput(f"{path} is empty: give a file with a record a line")
    return found


def records_in(path: Path, *columns: str) -> list[dict[str, str]]:
    """The records of a CSV file whose header has at least ``columns``."""
    found = list(csv.DictReader(lines_in(path)))
    missing = [column for column in columns if not found or column not in found[0]]
    if missing:
        raise BadInput(f"{path} has no column {missing[0]!r}: needed are {', '.join(columns)}, in the first line")
    return found
