"""Checks the arguments of a pipeline's declaration, each where it is given; the text says what to give instead."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from datetime import timedelta

from sluicegate.config.typed import duration_s
from sluicegate.domain import SINK, SOURCE
from sluicegate.errors import BadInput
from sluicegate.spark.pipeline.elements import Stream, check_stream
from sluicegate.spark.pipeline.row_functions import RowsOperator

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,99}")


def keep_seconds(name: str, keep: object, written: bool) -> float:
    """How long the rows of sink ``name`` stay.

    >>> keep_seconds("counts", "7d", False), keep_seconds("counts", True, False), keep_seconds("counts", False, True)
    (604800.0, inf, 0.0)
    """
    if isinstance(keep, bool):
        if not keep and not written:
            raise BadInput(f"sink {name!r} neither keeps nor writes rows: give write=, or leave keep=False out")
        return math.inf if keep else 0.0
    if not isinstance(keep, str | timedelta):
        raise BadInput(f"sink {name!r}: keep is {keep!r}: give True, False, a time such as '7d', or a timedelta")
    seconds = duration_s(keep) if isinstance(keep, str) else keep.total_seconds()
    if not seconds > 0:
        raise BadInput(f"sink {name!r}: keep is {keep}: give a time above 0, or keep=False")
    return seconds


def check_outputs(operator: str, outputs: object) -> None:
    if isinstance(outputs, str) or not isinstance(outputs, Collection) or not outputs:
        raise BadInput(f"operator {operator!r}: name its outputs, each once, in a list")
    for output in outputs:
        check_name("output", output)
    if len(set(outputs)) != len(outputs):
        raise BadInput(f"operator {operator!r}: name its outputs, each once")


def check_schema(what: str, name: str, schema: object) -> None:
    if not isinstance(schema, str):
        raise BadInput(
            f"{what} {name!r}: schema is {type(schema).__name__}: give a text such as 'text string, at timestamp'"
        )


def only_stream(stream: Stream, what: str) -> str:
    check_stream(what, stream)
    if len(stream.names) != 1:
        raise BadInput(f"{what} takes one stream, got the union of {', '.join(stream.names)}: add an operator for it")
    return stream.names[0]


def check_dead_letters(name: str, function: object, reads: tuple[Stream, ...], stateful: bool) -> None:
    """Allow dead letters only where a failure can be attributed to a single row."""
    if not isinstance(function, RowsOperator):
        raise BadInput(
            f"operator {name!r}: dead_letters needs a function of rows, made by sluicegate.by_row or in_pandas; of "
            "other code Spark does not say which row failed (in SQL use try_cast, try_divide, from_json and a splitter)"
        )
    if stateful or len(reads) != 1:
        raise BadInput(
            f"operator {name!r}: dead_letters is for operators without state that read one stream: take the rows apart "
            "in an operator before it"
        )


def check_function(what: str, name: str, function: object) -> None:
    if not callable(function):
        raise BadInput(f"{what} {name!r}: {function!r} is no function that gives a DataFrame")
    if name in (SOURCE, SINK):
        raise BadInput(f"{what} name {name!r} means the outside world: choose another")


def check_retry(what: str, name: str, retry_for_s: float | None) -> None:
    """Refuse a retry limit below 0 s; 0 means no retry, ``None`` no limit."""
    if retry_for_s is not None and (not isinstance(retry_for_s, int | float) or not retry_for_s >= 0):
        raise BadInput(f"{what} {name!r}: retry_for_s is {retry_for_s!r}, give seconds, 0 or more; None means no limit")


def check_name(what: str, name: str) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise BadInput(f"{what} name {str(name)[:120]!r}: use letters, digits, _ and -, a letter first, at most 100")
