"""Operators made from Python functions over rows: finds the rows a function fails on, and skips them if asked to.

    pipeline.operator("parse", by_row(parse, "id long, amount double"), lines, dead_letters=True)

When a function raises, its rows are bisected until each failing row stands alone: the function is called again with
fewer rows, and must not depend on earlier calls. Without dead letters the error names the first failing row, and the
operator stops. Errors that no row causes (a service, the machine, a missing module) are raised unchanged.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, TimestampNTZType, TimestampType

from sluicegate.errors import BadInput
from sluicegate.spark.pipeline.failures import ROW_NOTE, is_a_rows_fault

if TYPE_CHECKING:
    import pandas as pd

ROWS = "rows"
DEAD_LETTERS = "dead_letters"
"""The outputs of an operator with dead letters: its result, and the rows that it failed on."""
PLACE = "sluicegate.place"
"""Local property of a Spark job that says where the rows of its batch are."""
_BATCH = "streaming.sql.batchId"
DEAD_SCHEMA = "dead_operator string, dead_batch long, dead_place string, dead_reason string, dead_row string"
_DEAD = ("dead_operator", "dead_batch", "dead_place", "dead_reason", "dead_row")
_MOST_TOLD = 1000
_ROWS_AT_ONCE = 1000
_CONVERTED_BY_SPARK = (ArrayType, MapType, StructType, TimestampType, TimestampNTZType)
"""Column types with several representations in pandas: only Spark can say which of them it accepts."""

T = TypeVar("T")
F = TypeVar("F")
Row = Mapping[str, Any]
RowFunction = Callable[[dict[str, Any]], Row | Iterable[Row] | None]
PandasFunction = Callable[[Iterator["pd.DataFrame"]], Iterable["pd.DataFrame"]]


def dead_letters_of(operator: str) -> str:
    """The name of the stream of an operator's dead letters."""
    return f"{operator}.{DEAD_LETTERS}"


def is_dead_letters(group: str, stream: str) -> bool:
    """Whether a stream is the dead letters of a group's last operator; a splitter's output cannot have that name.

    >>> is_dead_letters("clean+parse", "parse.dead_letters"), is_dead_letters("clean", "clean")
    (True, False)
    """
    return stream == dead_letters_of(group.rpartition("+")[2])


class WrongResult(Exception):
    """A function returned something else than declared; no row is at fault."""


@dataclass(frozen=True, slots=True)
class RowsOperator(ABC):
    """A function from DataFrame to DataFrame that can name the row it fails on."""

    schema: str

    def __call__(self, frame: DataFrame) -> DataFrame:
        """Apply the function, without dead letters."""
        return self._mapped(frame, None)

    def with_dead_letters(self, frame: DataFrame, operator: str) -> DataFrame:
        """Apply the function; adds columns for rows that it failed on, and ``output``, which tells both kinds apart."""
        taken = sorted(set(_columns(self.schema).names) & {"output", *_DEAD})
        if taken:
            raise BadInput(f"operator {operator!r} has dead letters, which need column {taken[0]!r}: rename yours")
        return self._mapped(frame, operator)

    def _written(self, operator: str | None) -> str:
        return self.schema if operator is None else f"{self.schema}, {DEAD_SCHEMA}, output string"

    @abstractmethod
    def _mapped(self, frame: DataFrame, operator: str | None) -> DataFrame: ...


@dataclass(frozen=True, slots=True)
class ByRow(RowsOperator):
    """``function`` takes one row as a dict and gives one, several or none."""

    function: RowFunction

    def _mapped(self, frame: DataFrame, operator: str | None) -> DataFrame:
        columns = _columns(self._written(operator))
        written, needed = (to_arrow_schema(one, timezone="UTC") for one in (columns, _columns(self.schema)))
        function = self.function

        def made(rows: pa.RecordBatch) -> list[pa.RecordBatch]:
            found = [one for row in rows.to_pylist() for one in _rows_of(function(row))]
            result = pa.RecordBatch.from_pylist(found, schema=needed)
            for field, column in zip(needed, result.columns, strict=True):
                _check_nulls(field.name, field.nullable, column.null_count)
            return [result]

        def take(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            at = 0
            for batch in batches:
                for first in range(0, batch.num_rows, _ROWS_AT_ONCE):
                    rows = batch.slice(first, _ROWS_AT_ONCE)
                    good, bad = taken(made, rows, pa.RecordBatch.slice, at + first, operator)
                    if operator is None:
                        yield from good
                        continue
                    yield from (_padded(one, written, ROWS) for one in good)
                    if bad:
                        told = [bad_row(operator, place, rows.slice(i, 1).to_pylist()[0], why) for i, place, why in bad]
                        yield pa.RecordBatch.from_pylist([{**one, "output": DEAD_LETTERS} for one in told], written)
                at += batch.num_rows

        return frame.mapInArrow(take, columns)


@dataclass(frozen=True, slots=True)
class InPandas(RowsOperator):
    """``function`` is one for ``mapInPandas`` whose rows do not depend on each other."""

    function: PandasFunction

    def _mapped(self, frame: DataFrame, operator: str | None) -> DataFrame:
        columns, needed = _columns(self._written(operator)), _columns(self.schema)
        function = self.function

        def made(rows: pd.DataFrame) -> list[pd.DataFrame]:
            found = list(function(iter([rows])))
            if operator is not None:
                for one in found:
                    _check_pandas(one, needed)
            return found

        def take(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
            import pandas as pd

            at = 0
            for rows in batches:
                good, bad = taken(made, rows, lambda some, first, n: some.iloc[first : first + n], at, operator)
                at += len(rows)
                if operator is None:
                    yield from good
                    continue
                nothing = dict.fromkeys(_DEAD)
                yield from (one[needed.names].assign(**nothing, output=ROWS) for one in good)
                if bad:
                    letters = [bad_row(operator, place, _as_row(rows, i), why) for i, place, why in bad]
                    nothing = dict.fromkeys(needed.names)
                    yield pd.DataFrame([{**nothing, **one, "output": DEAD_LETTERS} for one in letters], dtype=object)

        return frame.mapInPandas(take, columns)


def by_row(function: RowFunction, schema: str) -> ByRow:
    """An operator from a Python function of one row (a dict): it gives a row, several, or ``None`` for none."""
    return ByRow(schema, _checked(function, schema, "by_row"))


def in_pandas(function: PandasFunction, schema: str) -> InPandas:
    """An operator from a function as ``mapInPandas`` takes it, whose rows do not depend on each other."""
    return InPandas(schema, _checked(function, schema, "in_pandas"))


def taken(
    made: Callable[[T], list[Any]],
    rows: T,
    part: Callable[[T, int, int], T],
    at: int,
    operator: str | None,
) -> tuple[list[Any], list[tuple[int, str, str]]]:
    """Apply a function to ``rows``; returns its results, and index, place and reason of each row that it fails on.

    ``at`` is how many rows the task had before these. Without an ``operator`` the first failing row is raised.
    """
    good, bad = list[Any](), list[tuple[int, str, str]]()
    todo = [(0, _count(rows))]
    while todo:
        first, number = todo.pop()
        try:
            good += made(part(rows, first, number) if number < _count(rows) else rows)
        except Exception as problem:
            if not is_a_rows_fault(problem) or isinstance(problem, WrongResult):
                raise
            if number > 1:
                half = number // 2
                todo += [(first + half, number - half), (first, half)]
                continue
            place = f"row {at + first} of task {_partition()}"
            if operator is None:
                problem.add_note(f"{ROW_NOTE}{place}")
                raise
            bad.append((first, place, f"{type(problem).__name__}: {problem}"[:_MOST_TOLD]))
    return good, bad


def bad_row(operator: str, place: str, row: Row, why: str) -> dict[str, Any]:
    """A dead letter: the columns of ``DEAD_SCHEMA``."""
    context = TaskContext.get()
    batch, edge = (context.getLocalProperty(_BATCH), context.getLocalProperty(PLACE)) if context else (None, None)
    return {
        "dead_operator": operator,
        "dead_batch": int(batch) if batch is not None else None,
        "dead_place": f"{edge}, {place}" if edge else place,
        "dead_reason": why,
        "dead_row": json.dumps(row, default=str, ensure_ascii=False),
    }


def _rows_of(result: object) -> list[Row]:
    if result is None:
        return []
    if isinstance(result, Mapping):
        return [result]
    if isinstance(result, str | bytes) or not isinstance(result, Iterable):
        raise WrongResult(f"a function of by_row gave {type(result).__name__}: return a dict, several, or None")
    return list(result)


def _padded(rows: pa.RecordBatch, schema: pa.Schema, output: str) -> pa.RecordBatch:
    empty = [pa.nulls(rows.num_rows, schema.field(name).type) for name in _DEAD]
    named = pa.array([output] * rows.num_rows, schema.field("output").type)
    return pa.RecordBatch.from_arrays([*rows.columns, *empty, named], schema=schema)


def _check_pandas(found: object, needed: StructType) -> None:
    """Refuse what Spark would refuse later, when the failing row could no longer be identified."""
    import pandas as pd

    if not isinstance(found, pd.DataFrame):
        raise WrongResult(f"a function of in_pandas gave {type(found).__name__}: yield pandas DataFrames")
    missing = [name for name in needed.names if name not in found.columns]
    if missing:
        raise WrongResult(f"a function of in_pandas gave no column {missing[0]!r}: its schema names it")
    for field in needed.fields:
        _check_nulls(field.name, field.nullable, int(found[field.name].isna().sum()))
    for field, kind in zip(needed.fields, to_arrow_schema(needed, timezone="UTC").types, strict=True):
        if not _is_converted_by_spark(field.dataType):
            pa.Array.from_pandas(found[field.name], type=kind, safe=False)


def _check_nulls(column: str, nullable: bool, nulls: int) -> None:
    """Refuse nulls in a NOT NULL column: Spark does not check them, and would give a wrong answer."""
    if nulls and not nullable:
        raise ValueError(f"column {column!r} is NOT NULL and has no value")


def _is_converted_by_spark(kind: DataType) -> bool:
    return isinstance(kind, _CONVERTED_BY_SPARK)


def _as_row(rows: pd.DataFrame, place: int) -> Row:
    return {str(name): value for name, value in rows.iloc[place : place + 1].to_dict("records")[0].items()}


def _columns(schema: str) -> StructType:
    columns = StructType.fromDDL(schema)
    if not isinstance(columns, StructType):
        raise BadInput(f"schema {schema!r}: name its columns, such as 'id long'")
    return columns


def _count(rows: Any) -> int:
    return len(rows)


def _partition() -> int:
    context = TaskContext.get()
    return context.partitionId() if context else 0


def _checked(function: F, schema: object, what: str) -> F:
    if not callable(function):
        raise BadInput(f"{what}: {function!r} is no function")
    if not isinstance(schema, str) or not schema:
        raise BadInput(f"{what}: give the columns that the function returns, such as 'id long, amount double'")
    return function
