"""An application whose rows are lines of text: generated ones, or with ``--input`` those of a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame

from sluicegate.lab.running.app import Answer, App
from sluicegate.lab.running.given import Records
from sluicegate.spark.pipeline.declaration import Pipeline

LinesCheck = Callable[[Mapping[str, int], Mapping[str, DataFrame], Records[str]], Answer]
"""As an application's ``check``, with the lines that were fed."""


def line_app(
    lines: Records[str],
    read: Callable[[Path], Records[str]],
    check: LinesCheck,
    build: Callable[[], Pipeline],
    *,
    name: str,
    about: str,
    paper: str,
    calm_per_s: float,
    slo: str,
    column: str = "line",
) -> App:
    """The application on ``lines``, in ``column``; given a file it is the same on what ``read`` finds in it."""

    def on(lines: Records[str]) -> App:
        return App(
            name=name,
            about=about,
            paper=paper,
            build=build,
            rows=partial(_rows, lines=lines, column=column),
            check=lambda fed, sinks: check(fed, sinks, lines),
            calm_per_s=calm_per_s,
            slo=slo,
            given=lambda path: on(read(path)),
        )

    return on(lines)


def _rows(source: str, first: int, count: int, lines: Records[str], column: str) -> pa.Table:
    return pa.table({column: lines(first, count)})
