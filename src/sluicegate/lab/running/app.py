"""Defines an application: a pipeline, rows to feed it, and the right answer, computed independently of Spark.

A row is a function of its number alone. So feeding can stop and resume anywhere, and the right answer for the first n
rows can be computed without data of the run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame

from sluicegate.spark.pipeline.declaration import Pipeline


@dataclass(frozen=True, slots=True)
class Answer:
    """How the output compares with the right answer.

    ``lost`` and ``duplicated`` count input rows that are missing from the answer or in it more than once,
    ``wrong_keys`` the keys with a wrong answer.
    """

    rows_out: int
    lost: int
    duplicated: int
    exact: bool
    note: str = ""
    wrong_keys: int = 0


@dataclass(frozen=True, slots=True)
class App:
    """An application: ``rows(source, first, count)`` makes rows from ``first`` on; ``check(rows fed, sinks)`` judges.

    Without ``rows`` the sources are fed from outside, or are Spark's own streams; without ``check`` the answer is not
    checked. ``given(path)`` is the same application on the records of a real file, cycled. ``beside()`` starts what the
    application needs while it runs, such as a server, and yields an application that is configured for it.
    """

    name: str
    build: Callable[[], Pipeline]
    rows: Callable[[str, int, int], pa.Table] | None = None
    check: Callable[[Mapping[str, int], Mapping[str, DataFrame]], Answer] | None = None
    about: str = ""
    paper: str = ""
    calm_per_s: float = 100.0
    slo: str = "mean=5s"
    given: Callable[[Path], App] | None = None
    beside: Callable[[], AbstractContextManager[App]] | None = None

    def brought_up(self) -> AbstractContextManager[App]:
        """A context in which the application is ready to run."""
        return self.beside() if self.beside else nullcontext(self)


def compare(expected: Mapping[object, int], found: Mapping[object, int], rows_out: int) -> Answer:
    """Compare counts by key: the number missing, the number in excess, and the first difference as an example.

    >>> compare({"a": 2, "b": 1}, {"a": 3}, rows_out=5)
    Answer(rows_out=5, lost=1, duplicated=1, exact=False, note="'a': 3 instead of 2", wrong_keys=2)
    """
    keys = [*expected, *(key for key in found if key not in expected)]
    pairs = [(key, expected.get(key, 0), found.get(key, 0)) for key in keys]
    wrong = [f"{key!r}: {got} instead of {want}" for key, want, got in pairs if want != got]
    return Answer(
        rows_out=rows_out,
        lost=sum(max(want - got, 0) for _, want, got in pairs),
        duplicated=sum(max(got - want, 0) for _, want, got in pairs),
        exact=not wrong,
        note=wrong[0] if wrong else "",
        wrong_keys=len(wrong),
    )
