"""Real input in place of the generated one: the records of a file, over and over, so that a run may last any time."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from sluicegate.errors import BadInput

T = TypeVar("T")
Records = Callable[[int, int], list[T]]
"""From the number of the first record and a count to the records: a generator's formula, or a file."""


def cycled(records: Sequence[T]) -> Records[T]:
    """Record i is the one at i modulo their number.

    >>> cycled(["a", "b", "c"])(2, 4)
    ['c', 'a', 'b', 'c']
    """
    return lambda first, count: [records[at % len(records)] for at in range(first, first + count)]


def lines_in(path: Path) -> list[str]:
    """The lines of a text file that hold anything."""
    try:
        found = [line for line in path.read_text("utf-8", errors="replace").splitlines() if line.strip()]
    except OSError as problem:
        raise BadInput(f"cannot read {path}: {problem.strerror}") from problem
    if not found:
        raise BadInput(f"{path} is empty: give a file with a record a line")
    return found


def records_in(path: Path, *columns: str) -> list[dict[str, str]]:
    """The records of a CSV file with a header that names at least ``columns``."""
    found = list(csv.DictReader(lines_in(path)))
    missing = [column for column in columns if not found or column not in found[0]]
    if missing:
        raise BadInput(f"{path} has no column {missing[0]!r}: needed are {', '.join(columns)}, in the first line")
    return found
