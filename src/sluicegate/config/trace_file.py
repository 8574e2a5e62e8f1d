"""Reads load traces: CSV files of any step and size, as one value a minute; every mistake is named with its line.

The file is read in chunks of rows that become arrays, so that gigabytes need some 16 bytes a row. Comma, semicolon, tab
and bar separate; a header is optional; empty lines and lines that start with # are skipped. Gzip is unpacked.
"""

from __future__ import annotations

import csv
import gzip
import math
import warnings
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import NoReturn, TextIO

import numpy as np
from numpy.typing import NDArray

from sluicegate.config.trace_columns import Columns, find_columns, seconds_of
from sluicegate.config.trace_minutes import to_minutes
from sluicegate.domain.topology import LARGEST, SLOWEST_PER_S
from sluicegate.errors import BadInput

Floats = NDArray[np.float64]
Row = tuple[int, list[str]]

_SAMPLE = 1000  # rows used to find the columns
_CHUNK = 65_536
_MOST_ROWS = 60_000_000  # 1 GB of arrays
_DELIMITERS = ",;\t|"


@dataclass(frozen=True, eq=False, slots=True)
class Trace:
    """One value a minute, in the unit of its column; ``repairs`` say what was done to get there."""

    name: str
    values: Floats
    step_s: float
    column: str
    time_column: str | None
    rows: int
    repairs: tuple[str, ...]


def read_trace(path: Path, column: str | None = None) -> Trace:
    """The load in ``path``; ``column`` names it where the guess would be wrong."""
    try:
        with _opened(path) as file:
            return _read(file, path, column)
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file; check the path") from None
    except IsADirectoryError:
        raise BadInput(f"{path}: is a folder; name a file in it") from None
    except UnicodeDecodeError:
        raise BadInput(f"{path}: is not UTF-8 text; give a CSV file") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as problem:
        raise BadInput(f"{path}: is a damaged gzip file ({problem}); copy it again") from None
    except OSError as problem:
        raise BadInput(f"{path}: cannot be read ({problem.strerror or problem}); check its rights") from None
    except csv.Error as problem:
        raise BadInput(f"{path}: is not a CSV file ({problem}); check its quotes and line ends") from None
    except BadInput as problem:
        known = str(problem).startswith(str(path))
        raise problem if known else BadInput(f"{path}: {problem}") from None


def _opened(path: Path) -> TextIO:
    """The text of the file, unpacked where its first bytes are those of gzip."""
    with path.open("rb") as raw:
        packed = raw.read(2) == b"\x1f\x8b"
    if packed:
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def _read(file: TextIO, path: Path, column: str | None) -> Trace:
    rows = _rows(file)
    first = next(rows, None)
    if first is None:
        raise BadInput("is empty; give at least two rows, a time and a rate each")
    names, body = _headed(first, rows)
    sample = list(islice(body, _SAMPLE))
    if len(sample) < 2:
        raise BadInput(f"has {len(sample)} row of values; a trace needs at least two")
    _check_width(names, sample)
    sound = [row for _, row in sample if all(cell.strip() for cell in row)] or [row for _, row in sample]
    columns = find_columns(names, _typical(sound), column)
    times_s, values = _arrays(chain(sample, body), columns)
    if 0 < values.max() < SLOWEST_PER_S:
        raise BadInput(f"{columns.load_name} is at most {values.max():g}; give it in a smaller unit")
    found = to_minutes(times_s, values)
    return Trace(
        name=path.name,
        values=found.values,
        step_s=found.step_s,
        column=columns.load_name,
        time_column=columns.time_name,
        rows=len(values),
        repairs=(*_said(columns, len(values)), *found.repairs),
    )


def _said(columns: Columns, rows: int) -> tuple[str, ...]:
    if columns.time is None:
        return (f"no column of times: the {rows} rows are taken as one a minute",)
    if columns.by_values:
        unit = {1e-3: "milliseconds", 1e-6: "microseconds", 1e-9: "nanoseconds"}.get(columns.time_unit_s, "seconds")
        return (f"column {columns.time_name!r} rises like a clock and is taken for the time, in {unit}",)
    return ()


def _rows(file: TextIO) -> Iterator[Row]:
    """Line number and cells of every row that is not empty or a comment."""
    lines = iter(file)
    skipped = 0
    head = ""
    for head in lines:
        if head.strip() and not head.lstrip().startswith("#"):
            break
        skipped += 1
    delimiter = max(_DELIMITERS, key=head.count)
    reader = csv.reader(chain([head], lines), delimiter=delimiter)
    for row in reader:
        if row and any(row) and not row[0].startswith("#"):
            yield reader.line_num + skipped, row


def _headed(first: Row, rows: Iterator[Row]) -> tuple[tuple[str, ...], Iterator[Row]]:
    """The columns' names, and the rows after them; without a header the names are the numbers 1, 2, .."""
    cells = first[1]
    if any(_number(cell) is not None or seconds_of(cell) is not None for cell in cells):
        return tuple(str(i) for i in range(1, len(cells) + 1)), chain([first], rows)
    return tuple(cell.strip() for cell in cells), rows


def _typical(rows: list[list[str]]) -> list[list[str]]:
    """The rows that have numbers or dates where most rows have them: a bad cell must not hide its column."""
    kinds = [tuple(_kind(cell) for cell in row) for row in rows]
    usual = tuple(max(set(column), key=column.count) for column in zip(*kinds, strict=True))
    return [row for row, kind in zip(rows, kinds, strict=True) if kind == usual] or rows


def _kind(cell: str) -> str:
    if _number(cell) is not None:
        return "number"
    return "date" if seconds_of(cell) is not None else "text"


def _check_width(names: tuple[str, ...], rows: list[Row]) -> None:
    wide = len(names)
    for line, row in rows:
        if len(row) != wide:
            raise BadInput(f"line {line} has {len(row)} cells where {wide} are expected; mend or remove it")


def _arrays(rows: Iterator[Row], columns: Columns) -> tuple[Floats, Floats]:
    times: list[Floats] = []
    values: list[Floats] = []
    read = 0
    while chunk := list(islice(rows, _CHUNK)):
        read += len(chunk)
        if read > _MOST_ROWS:
            raise BadInput(f"has more than {_MOST_ROWS:,} rows; average it to minutes first, or cut it")
        _check_width(columns.names, chunk)
        values.append(_loads(chunk, columns))
        times.append(_times(chunk, columns, read - len(chunk)))
    return np.concatenate(times), np.concatenate(values)


def _loads(chunk: list[Row], columns: Columns) -> Floats:
    try:
        found = np.array([float(row[columns.load]) for _, row in chunk])
    except ValueError:
        found = np.array([np.nan])
    if not np.isfinite(found).all() or (found < 0).any() or (found > LARGEST).any():
        _refuse_load(chunk, columns)
    return found


def _refuse_load(chunk: list[Row], columns: Columns) -> NoReturn:
    for line, row in chunk:
        cell = row[columns.load].strip()
        name = f"column {columns.load_name}" if columns.load_name.isdecimal() else columns.load_name
        value, where = _number(cell), f"line {line}: {name}"
        if not cell:
            raise BadInput(f"{where} is empty; fill it in or remove the line, a gap is then interpolated")
        if value is None:
            raise BadInput(f"{where} is {cell[:40]!r}, not a number; mend it, or name another column with --column")
        if not math.isfinite(value):
            raise BadInput(f"{where} is {cell}; remove the line, the gap is then interpolated")
        if value < 0:
            raise BadInput(f"{where} is {cell}; a load cannot be negative: mend it, or name another column")
        if value > LARGEST:
            raise BadInput(f"{where} is {cell[:40]}; a load is at most {LARGEST:g}: mend it, or name another column")
    raise BadInput(f"{columns.load_name} cannot be read as numbers; name another column with --column")


def _times(chunk: list[Row], columns: Columns, before: int) -> Floats:
    if columns.time is None:
        return 60.0 * np.arange(before, before + len(chunk), dtype=np.float64)
    plain = _plain_dates([row[columns.time] for _, row in chunk]) if columns.kind == "date" else None
    if plain is not None:
        return plain
    parse = seconds_of if columns.kind == "date" else _number
    found: list[float] = []
    for line, row in chunk:
        moment = parse(row[columns.time])
        if moment is None or not math.isfinite(moment):
            cell = row[columns.time].strip()[:40]
            raise BadInput(f"line {line}: {columns.time_name} is {cell!r}, not a time like the others; mend it")
        found.append(moment * columns.time_unit_s)
    return np.array(found)


def _plain_dates(cells: list[str]) -> Floats | None:
    """Seconds of dates like 2020-01-31T12:00:00, with or without a Z: many times faster than one by one."""
    bare = [cell.strip().removesuffix("Z") for cell in cells]
    if any(len(cell) != len("2020-01-31T12:00:00") for cell in bare):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # NumPy warns of time zones, which it ignores
            return np.array(bare, dtype="datetime64[s]").astype(np.float64)
    except (ValueError, UserWarning):
        return None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
