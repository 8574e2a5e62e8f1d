"""The five tasks of model-driven scheduling as operators: one row in, one row out, the answer in the task's own column.

    blob    reads a file of 64 KB from a store, after a wait: its checksum
    table   looks one record of 20,000 up in a store, after a wait: the sum of its 20 columns
    pi      Viete's product, 15 terms, to 600 places: ten of its digits
    parse   parses an XML message of 27 KB with an event parser (expat): the sum of one field over its 400 readings
    batch   appends a line of 100 bytes to a file, written once 100 lines are buffered: the line's checksum

All are stateless. The paper's rows carry ten opaque bytes, as ours do; read as a number, they select the blob, record
or message. The paper's tasks differ by four orders of magnitude (2 rows/s for blob, 60,000 for batch); here waits and
sizes are ours, and a processor does some hundred rows/s of each except batch, whose rows cost next to nothing in the
paper too. With ``waiting``, pi and parse sleep instead of computing, so that k processors do k times the work of one
even with fewer cores.

The right answers at the end are computed independently: without reading, parsing or Viete's product.
"""

from __future__ import annotations

import json
import os
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import cache
from pathlib import Path
from typing import TypeVar
from xml.parsers.expat import ParserCreate

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from sluicegate.errors import EnvironmentLacks
from sluicegate.lab.apps.inputs.local_store import BLOBS, RECORDS, blob, reading, record

T = TypeVar("T")
SCHEMA = "id long, message string, blob long, table long, pi string, parse long, batch long"
STORE_WAITS_S: Mapping[str, float] = {"blob": 0.004, "table": 0.003}
COMPUTING_WAITS_S: Mapping[str, float] = {"pi": 0.0025, "parse": 0.0015}
TERMS, PLACES, DIGITS = 15, 600, 10
MESSAGES, READINGS = 16, 400
LINE_BYTES, WINDOW_LINES = 100, 100


@dataclass(frozen=True, slots=True)
class TaskSurroundings:
    """What the tasks need around them: a store on this machine, and a folder to write to.

    ``waiting``: pi and parse sleep for as long as computing would take.
    """

    store_port: int
    archive: str
    waiting: bool = False


Task = Callable[[int], object]
"""Maps the number in a row to the task's answer."""


def doing(
    task: str, beside: TaskSurroundings, column: str | None = None, schema: str = SCHEMA
) -> Callable[[DataFrame], DataFrame]:
    """An operator that runs a task for each row and writes ``column``, by default the one named like the task."""
    filled = column or task

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with TASKS[task](beside) as answer:
            for batch in batches:
                place = batch.schema.get_field_index(filled)
                numbers = np.asarray(batch.column("message").cast(pa.int64())).tolist()
                answers = [answer(number) for number in numbers]
                yield batch.set_column(place, filled, pa.array(answers, batch.schema.field(place).type))

    return lambda rows: rows.mapInArrow(work, schema)


@contextmanager
def _blob(beside: TaskSurroundings) -> Iterator[Task]:
    with reading(beside.store_port) as get:
        yield lambda number: zlib.crc32(get(f"/blob/{number % BLOBS}"))


@contextmanager
def _table(beside: TaskSurroundings) -> Iterator[Task]:
    with reading(beside.store_port) as get:
        yield lambda number: sum(json.loads(get(f"/table/{number % RECORDS}")).values())


@contextmanager
def _pi(beside: TaskSurroundings) -> Iterator[Task]:
    digits = _instead(_viete_once, "pi") if beside.waiting else viete
    yield lambda number: digits(PLACES)[first_digit(number) :][:DIGITS]


@contextmanager
def _parse(beside: TaskSurroundings) -> Iterator[Task]:
    total = _instead(_total_once, "parse") if beside.waiting else total_load
    yield lambda number: total(number % MESSAGES)


@contextmanager
def _batch(beside: TaskSurroundings) -> Iterator[Task]:
    """The batch task; every process has its own file, and a retried batch writes its lines again."""
    folder = Path(beside.archive)
    if not folder.is_dir():
        raise EnvironmentLacks(
            f"no folder {folder} to write to: `sluicegate run` makes one, for workers on its machine"
        )
    with (folder / f"{os.getpid()}.txt").open("ab", buffering=WINDOW_LINES * LINE_BYTES) as file:

        def write(number: int) -> int:
            file.write(line(number))
            return zlib.crc32(line(number))

        yield write


TASKS: Mapping[str, Callable[[TaskSurroundings], AbstractContextManager[Task]]] = {
    "blob": _blob,
    "table": _table,
    "pi": _pi,
    "parse": _parse,
    "batch": _batch,
}


def viete(places: int) -> str:
    """Decimal places of Viete's product with ``TERMS`` terms; the first eight are those of pi.

        2 / pi = prod a_n / 2,   a_1 = sqrt 2,   a_{n+1} = sqrt(2 + a_n)

    >>> viete(12)
    '141592652386'
    """
    with localcontext(prec=places + 10):
        a, product = Decimal(0), Decimal(1)
        for _ in range(TERMS):
            a = (2 + a).sqrt()
            product *= a / 2
        return str(2 / product)[2 : 2 + places]


def first_digit(number: int) -> int:
    """The first of the digits that a row gets."""
    return number % (PLACES - DIGITS)


def loads(message: int) -> list[int]:
    """The loads that a message reports."""
    at = np.arange(READINGS, dtype=np.int64) + message * READINGS
    return (at * 2654435761 % 1_000_003 % 5000).tolist()


@cache
def message_text(message: int) -> bytes:
    """The text of a message; kept in memory, as in the paper."""
    told = (
        f"<reading><meter>m{n}</meter><load>{load}</load><unit>W</unit></reading>"
        for n, load in enumerate(loads(message))
    )
    return f'<?xml version="1.0"?><readings station="s{message}">{"".join(told)}</readings>'.encode()


def total_load(message: int) -> int:
    """Parse a message in one pass without building a tree, and sum its loads."""
    total, parser = _Loads(), ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = total.begin, total.end
    parser.CharacterDataHandler = total.read
    parser.Parse(message_text(message), True)
    return total.sum


def line(number: int) -> bytes:
    """The archived line of a row: ``LINE_BYTES`` including the newline."""
    return f"{number:010d} {'.' * (LINE_BYTES - 12)}\n".encode()


_viete_once, _total_once = cache(viete), cache(total_load)


def _instead(known: Callable[[int], T], task: str) -> Callable[[int], T]:
    """Sleep as long as computing would take, and return a result that was computed once."""

    def wait(argument: int) -> T:
        time.sleep(COMPUTING_WAITS_S[task])
        return known(argument)

    return wait


class _Loads:
    """Parser callbacks that sum the load elements."""

    def __init__(self) -> None:
        self.sum, self._text, self._within = 0, "", False

    def begin(self, name: str, attributes: Mapping[str, str]) -> None:
        self._within, self._text = name == "load", ""

    def read(self, text: str) -> None:
        if self._within:
            self._text += text  # the parser may deliver a text in pieces

    def end(self, name: str) -> None:
        if self._within:
            self.sum += int(self._text)
        self._within = False


_GUARD = 20
"""Guard digits beyond the requested places, cut off at the end to absorb rounding."""


def answers(number: int) -> dict[str, object]:
    """The answers of all tasks for the number in a row."""
    return {
        "blob": _checksum(number % BLOBS),
        "table": sum(record(number % RECORDS).values()),
        "pi": polygon(PLACES)[first_digit(number) :][:DIGITS],
        "parse": _load(number % MESSAGES),
        "batch": zlib.crc32(line(number)),
    }


@cache
def polygon(places: int) -> str:
    """Viete's product of n terms is half the circumference of a polygon with 2^(n+2) sides, 2^(n+1) sin(pi / 2^(n+1)).

    Computed here by the series of the sine, in integers.

    >>> polygon(12)
    '141592652386'
    """
    one = 10 ** (places + _GUARD)
    angle = _whole_pi(one) >> (TERMS + 1)
    sine, power, n = 0, angle, 1
    while power:
        sine += power
        power = -power * angle // one * angle // one // ((n + 1) * (n + 2))
        power, n = (0 if abs(power) <= 1 else power), n + 2
    return str(sine << (TERMS + 1))[1 : 1 + places]


def _whole_pi(one: int) -> int:
    """Machin: pi / 4 = 4 arctan(1/5) - arctan(1/239)."""
    return 4 * (4 * _arctan_of_inverse(5, one) - _arctan_of_inverse(239, one))


def _arctan_of_inverse(x: int, one: int) -> int:
    power, total, n = one // x, 0, 1
    while power:
        total += power // n * (1 if n % 4 == 1 else -1)
        power, n = power // (x * x), n + 2
    return total


@cache
def _checksum(number: int) -> int:
    return zlib.crc32(blob(number))


@cache
def _load(message: int) -> int:
    return sum(loads(message))
