"""Puts rows on a pipeline's source edge from any Python program, without Spark: exactly once, in order.

A reopened feed continues after the last table that was published; ``published`` tells the program where to resume.
Several feeds of one source take turns: each table gets a number of its own.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import time
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sluicegate.domain.births import Births
from sluicegate.errors import BadInput, EnvironmentLacks
from sluicegate.runlog.files import read_if_there
from sluicegate.runlog.layout import Layout
from sluicegate.runlog.plan_file import MOST_BEHIND
from sluicegate.spark.edges.backlog import Backlog
from sluicegate.spark.edges.file_sums import sums_of
from sluicegate.spark.edges.folder import FolderEdge
from sluicegate.spark.edges.manifest import DataFile

_LOOK_EVERY_S = 0.1
_ROW_GROUP_ROWS = 32_768
"""Small row groups, so that tasks which share a file decode little of it twice."""


class Feed:
    """A writer to one source edge."""

    def __init__(self, folder: Path, readers: tuple[Path, ...] = (), most_behind: int = MOST_BEHIND) -> None:
        """``readers`` are the checkpoints of the source's readers; ``append`` blocks while they are too far behind."""
        _check_is_a_source(folder.absolute())
        self._edge = FolderEdge(folder)
        self._backlog, self._most_behind = Backlog(self._edge, readers), most_behind
        _ = self._edge.schema_json  # fails at once if there is no such edge
        self._next = self.rows = 0
        self._columns: pa.Schema | None = None
        self._never_null: tuple[str, ...] = ()
        with self._turn():
            self._edge.sweep()
            self._find_end()

    @property
    def published(self) -> int:
        """Number of tables on the edge, over all feeds."""
        return self._next

    def append(self, table: pa.Table, born: Iterable[tuple[float, float]] | None = None) -> None:
        """Publish a table, all of it or nothing; blocks while the readers are too far behind.

        ``born`` are (time, rows) pairs; by default all rows are born now.
        """
        self._check(table.schema)
        self._check_nulls(table)
        while self._backlog.rows() > self._most_behind:
            time.sleep(_LOOK_EVERY_S)
        births = Births.of(born if born is not None else [(time.time(), float(table.num_rows))])
        with self._turn():
            home = f"data/{self._next}-{uuid.uuid4().hex[:8]}"
            try:
                files = self._write(table, home)
                published = self._edge.publish(self._next, files, births, time.time())
            except BaseException:
                if self._edge.has(self._next):  # an interrupt may come just after it was published
                    self._find_end()  # else ``published`` would have the program append it again
                else:
                    shutil.rmtree(self._edge.folder / home, ignore_errors=True)
                raise
            self._next, self.rows = published.number + 1, published.rows_after

    def _write(self, table: pa.Table, home: str) -> tuple[DataFile, ...]:
        if not table.num_rows:
            return ()
        (self._edge.folder / home).mkdir(parents=True)
        path = f"{home}/part-0.parquet"
        # without compression and dictionaries, as all rows that pass an edge
        pq.write_table(
            table, self._edge.folder / path, compression="none", use_dictionary=False, row_group_size=_ROW_GROUP_ROWS
        )
        return (DataFile(path, table.num_rows, *sums_of(self._edge.folder / path)),)

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        """Hold the writers' lock, with ``_next`` at the first free number."""
        try:
            with (self._edge.folder / "feeding").open("w") as turn:
                fcntl.flock(turn, fcntl.LOCK_EX)
                # The newest manifest is never deleted: if ours exists, or the one before is gone, another feed wrote.
                if self._edge.has(self._next) or (self._next and not self._edge.has(self._next - 1)):
                    self._find_end()
                yield
        except OSError as problem:
            told = os.strerror(problem.errno) if problem.errno else str(problem)
            raise EnvironmentLacks(
                f"source {self._edge.folder.name!r}: {told}: nothing published; mend that and append it again"
            ) from problem

    def _find_end(self) -> None:
        newest = self._edge.newest()
        self._next, self.rows = (newest.number + 1, newest.rows_after) if newest else (0, 0)
        self._edge.check_end(self._next)  # a table under the number of one that is lost would not be read

    def _check(self, schema: pa.Schema) -> None:
        if schema == self._columns:
            return
        from pyspark.sql.pandas.types import to_arrow_schema

        from sluicegate.spark.edges.kept import schema_of

        wanted = to_arrow_schema(schema_of(self._edge), timezone="UTC")
        same = schema.names == wanted.names and [f.type for f in schema] == [f.type for f in wanted]
        if not same:
            raise BadInput(
                f"source {self._edge.folder.name!r} takes ({_told(wanted)}), got ({_told(schema)}): nothing published"
            )
        self._columns = schema
        self._never_null = tuple(field.name for field in wanted if not field.nullable)

    def _check_nulls(self, table: pa.Table) -> None:
        """Refuse nulls in a NOT NULL column: Spark does not check them, and would give a wrong answer."""
        for name in self._never_null:
            column = table.column(name)
            if column.null_count:
                row = pc.index(column.is_null(), True).as_py()
                raise BadInput(
                    f"source {self._edge.folder.name!r}: column {name!r} is NOT NULL, and row {row} of the table has "
                    "none: nothing published; give a value, or declare the column without NOT NULL"
                )


def _check_is_a_source(folder: Path) -> None:
    """Refuse an edge that an operator writes: tables would take the numbers of its batches, which would then be lost.

    Already opening a feed there would delete what the operator has not published yet.
    """
    writers: dict[str, str] = {}
    sources: list[str] = []
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, IndexError):  # no pipeline's, or not readable
        described = json.loads(read_if_there(Layout(folder.parents[1]).description) or "{}")
        sources = [str(source) for source in described["sources"]]
        writers = {str(stream): str(node["name"]) for node in described["nodes"] for stream in node["writes"]}
    if folder.parent.name == "edges" and folder.name in writers:
        raise BadInput(
            f"edge {folder.name!r} is written by operator {writers[folder.name]!r}: feed a source, there is "
            f"{', '.join(sources) or 'none'}"
        )


def _told(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)
