"""An application whose sink is PostgreSQL: a retried batch replaces its earlier rows in one transaction."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql import DataFrame

from sluicegate.errors import EnvironmentLacks
from sluicegate.lab.chaos.database import asked
from sluicegate.lab.running.app import Answer, App, compare
from sluicegate.spark.pipeline.declaration import Pipeline

NAME = "postgres"
VARIABLE = "SLUICEGATE_CHAOS_DATABASE"
"""Environment variable with the server's address, for the driver."""
_KEPT = 7
"""Of ten rows, those that the operator keeps."""
TABLE = "create table if not exists taken (batch bigint, id bigint)"


def _address() -> str:
    found = os.environ.get(VARIABLE)
    if not found:
        raise EnvironmentLacks(f"application {NAME!r} runs under `sluicegate chaos {NAME}`, which brings the server up")
    return found


def write(batch: DataFrame, number: int) -> None:
    """Write a batch idempotently: delete the rows of an earlier attempt, insert, in one transaction."""
    lines = "".join(f"{number}\t{row['id']}\n" for row in batch.collect())
    copied = "\\copy taken from stdin" if lines else ""
    asked(_address(), f"{TABLE};\ndelete from taken where batch = {number};\n{copied}", lines)


def build() -> Pipeline:
    made = Pipeline(NAME)
    kept = made.operator("keep", lambda rows: rows.where(f"id % 10 < {_KEPT}"), made.source("rows", "id long"))
    made.sink("taken", kept, write=write, keep=False)
    return made


def rows(source: str, first: int, count: int) -> pa.Table:
    return pa.table({"id": pa.array(range(first, first + count), pa.int64())})


def check(fed: Mapping[str, int], sinks: Mapping[str, DataFrame]) -> Answer:
    found: Counter[object] = Counter(int(line) for line in asked(_address(), "select id from taken"))
    right: Counter[object] = Counter(number for number in range(fed["rows"]) if number % 10 < _KEPT)
    return compare(right, found, sum(found.values()))


APP = App(NAME, build, rows, check, about="rows to PostgreSQL, each batch in one transaction")
