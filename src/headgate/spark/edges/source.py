"""The streaming source that reads an edge: what Spark asks of it, answered from manifests and the plan in force.

Spark runs the planning half (offsets, partitions) in one Python process per source, and ``read`` in its tasks. k is
looked up whenever a batch is planned, so a change is in force at the next batch. With trigger 0 Spark asks for the
latest offset all the time; answering "nothing new" until the pace is due makes the pace a live lever. The answer is
held back for up to ``wait_s`` while nothing is there: that saves processor time and finds new rows within milliseconds.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from headgate.spark.edges.backlog import Backlog
from headgate.spark.edges.folder import FolderEdge
from headgate.spark.edges.shares import Slice, cut
from headgate.spark.plan_file import OperatorPlan, PlanFile

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadLimit

FORMAT = "headgate_edge"
_POLL_S = 0.005
_MOST_EMPTY = 200
"""Manifests without rows that may wait for the next one with rows; more of them are taken by a batch of their own."""

Offset = dict[str, object]


class SlicePartition(InputPartition):
    """The slices one task reads."""

    def __init__(self, slices: tuple[Slice, ...]) -> None:
        self.slices = slices


class EdgeSource(DataSource):
    """``spark.readStream.format("headgate_edge")`` with the options edge, plan, hold, operator, downstream and wait_s.

    While the file ``hold`` exists no batch starts: that is how a pipeline stops between two batches.
    """

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def streamReader(self, schema: StructType) -> EdgeReader:
        return EdgeReader(schema, self.options)


def source_named(name: str) -> type[EdgeSource]:
    """A source under a name of its own.

    Spark keeps one map of environment variables per registered source and writes to it whenever a reader starts; two
    queries that share a source can spoil the tasks that the other is sending out at that moment.
    """

    class NamedSource(EdgeSource):
        @classmethod
        def name(cls) -> str:
            return name

    return NamedSource


class EdgeReader(DataSourceStreamReader):
    """One consumer of one edge."""

    def __init__(self, schema: StructType, options: Mapping[str, str]) -> None:
        self._schema = schema
        self._edge = FolderEdge(Path(options["edge"]))
        self._operator = options["operator"]
        self._plan = PlanFile(Path(options["plan"]))
        self._hold = Path(options["hold"])
        self._wait_s = float(options["wait_s"])
        self._ahead = [
            Backlog(FolderEdge(Path(edge)), tuple(map(Path, readers)))
            for edge, readers in json.loads(options.get("downstream", "{}")).items()
        ]
        self._admitted_s = 0.0
        self._looked = 0

    def initialOffset(self) -> Offset:
        return self._offset(0)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        first = _next(start)
        until = time.monotonic() + self._wait_s
        while True:
            wanted = self._plan.read().of(self._operator)
            due = time.monotonic() >= self._admitted_s + wanted.pace_s
            if due and self._worth_a_batch(first) and not self._hold.exists() and self._followed(wanted):
                self._admitted_s = time.monotonic()
                return self._offset(self._admit(first, wanted))
            if time.monotonic() >= until:
                return start
            time.sleep(_POLL_S)

    def partitions(self, start: Offset, end: Offset) -> list[SlicePartition]:
        taken = [self._edge.need(number) for number in range(_next(start), _next(end))]
        files = [(str(self._edge.folder / file.path), file.rows) for manifest in taken for file in manifest.files]
        wanted = self._plan.read().of(self._operator)
        return [SlicePartition(share) for share in cut(files, wanted.processors, wanted.shares)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, SlicePartition):
            raise TypeError(f"partition of another source: {partition!r}")
        schema = to_arrow_schema(self._schema, timezone="UTC")
        for piece in partition.slices:
            yield from _rows(piece, schema)

    def commit(self, end: Offset) -> None:
        """Nothing to note: what is committed stands in the checkpoint, and the driver deletes by that."""

    def _followed(self, wanted: OperatorPlan) -> bool:
        """Whether those who read what this operator writes keep up well enough."""
        return all(backlog.rows() <= wanted.most_behind for backlog in self._ahead)

    def _worth_a_batch(self, first: int) -> bool:
        """Whether rows wait. Without this a loop would run for ever on the empty manifests it writes itself."""
        self._looked = max(self._looked, first)
        while (found := self._edge.manifest(self._looked)) is not None:
            if found.rows:
                return True
            self._looked += 1
        return self._looked - first >= _MOST_EMPTY

    def _offset(self, number: int) -> Offset:
        return {"edge": self._edge.folder.name, "next": number}

    def _admit(self, first: int, wanted: OperatorPlan) -> int:
        """One past the last manifest of this batch: at least one, then while they fit."""
        rows = 0
        for manifest in self._edge.since(first):
            rows += manifest.rows
            if rows > wanted.most_rows and manifest.number > first:
                return manifest.number
            last = manifest.number
        return last + 1


def _next(offset: Offset) -> int:
    return int(str(offset["next"]))


def _rows(piece: Slice, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of one slice; row groups outside it are not read."""
    with pq.ParquetFile(piece.path) as file:
        groups: list[int] = []
        at = skipped = 0
        for index in range(file.num_row_groups):
            rows = file.metadata.row_group(index).num_rows
            if at < piece.end and at + rows > piece.first:
                skipped = at if not groups else skipped
                groups.append(index)
            at += rows
        at = skipped
        for batch in file.iter_batches(row_groups=groups, columns=schema.names):
            first, end = max(piece.first - at, 0), min(piece.end - at, batch.num_rows)
            at += batch.num_rows
            if end > first:
                yield batch.slice(first, end - first).cast(schema)
