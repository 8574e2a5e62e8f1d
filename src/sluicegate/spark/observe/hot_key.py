"""Finds a hot key: one with so many rows that its task takes far longer than the others (a key is always in one task).

The times of key groups show where the work is (``act.group_loads``). If one group takes much more than its share, up to
20,000 of the newest rows on the operator's edge are counted by key, in the driver. The key columns are those that the
query groups by; if they are not columns of the edge (but computed inside the query), nothing is found.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from sluicegate.domain import HotKey
from sluicegate.errors import SluicegateError
from sluicegate.runlog.files import read_if_there, write_whole
from sluicegate.spark.edges.folder import FolderEdge

_EVERY_S = 4.0
_LEAST_SHARE = 0.25
"""Least share of an operator's time in one key group, and of its rows with one key. At half, keys would be reported at
which four tasks still help."""
_TIMES_ITS_PART = 2.0
_SAMPLED_ROWS = 20_000


@dataclass(slots=True)
class HotKeys:
    """Looks for a hot key of one operator every few seconds; keeps a small file with it while there is one."""

    stream: DataFrame
    path: Path
    edges: tuple[FolderEdge, ...]
    _columns: list[str] | None = None
    _next_s: float = 0.0
    _told: HotKey | None = field(default=None)

    def look(self, group_s: tuple[float, ...]) -> None:
        """Check if due. ``group_s`` are the seconds per batch of each key group, empty while unknown."""
        now_s = time.monotonic()
        if now_s < self._next_s or not group_s:
            return
        self._next_s = now_s + _EVERY_S
        found = self._sampled() if uneven(group_s) else None
        if found != self._told:
            self._told = found
            with contextlib.suppress(OSError):
                write_whole(self.path, json.dumps(asdict(found))) if found else self.path.unlink(missing_ok=True)

    def _sampled(self) -> HotKey | None:
        columns = self._key_columns()
        # files may be deleted once they are read, or be spoiled, and Python has no dates beyond 9999: the pipeline goes
        # on, and the next check tries again
        with contextlib.suppress(OSError, pa.ArrowException, ValueError, OverflowError, SluicegateError):
            rows = newest_rows(self.edges, columns) if columns else None
            return hottest(rows) if rows is not None else None
        return None

    def _key_columns(self) -> list[str]:
        if self._columns is None:
            self._columns = []
            with contextlib.suppress(PySparkException, Py4JError):
                self._columns = key_columns(self.stream)
        return self._columns


def key_columns(stream: DataFrame) -> list[str]:
    """The columns that the first stateful node of a query's plan groups by; none for computed expressions."""
    plan: Any = stream._jdf
    waiting = [plan.queryExecution().analyzed()]
    while waiting:
        node = waiting.pop(0)
        found = _grouped_by(node)
        if found is not None:
            return [attribute.name() for attribute in found if "Attribute" in str(attribute.getClass().getSimpleName())]
        children = node.children()
        waiting += [children.apply(i) for i in range(children.size())]
    return []


def _grouped_by(node: Any) -> list[Any] | None:
    """The grouping expressions of a stateful node of Spark's plan; ``None`` for other nodes."""
    kind = str(node.getClass().getSimpleName())
    if kind.startswith("TransformWithStateIn"):
        output = node.child().output()
        return [output.apply(i) for i in range(node.groupingAttributesLen())]
    by = {"Aggregate": "groupingExpressions", "Deduplicate": "keys", "DeduplicateWithinWatermark": "keys"}
    if kind not in by:
        return None
    found = getattr(node, by[kind])()
    return [found.apply(i) for i in range(found.size())]


def uneven(group_s: tuple[float, ...]) -> bool:
    """
    >>> uneven((1.0, 1.2, 0.9, 1.0)), uneven((1.0, 9.0, 1.0, 1.0))
    (False, True)
    """
    total, part = sum(group_s), 1 / len(group_s)
    return total > 0 and max(group_s) / total >= max(_LEAST_SHARE, min(_TIMES_ITS_PART * part, 0.9))


def newest_rows(edges: tuple[FolderEdge, ...], columns: list[str]) -> pa.Table | None:
    """The key columns of the newest rows that are still on the edges; ``None`` if a file lacks the columns."""
    parts, rows = list[pa.Table](), 0
    for path in _newest_files(edges):
        found = pq.ParquetFile(path)
        if not set(columns) <= set(found.schema_arrow.names):
            return None
        for group in reversed(range(found.num_row_groups)):  # a file may hold millions of rows
            parts.append(found.read_row_group(group, columns=columns))
            rows += len(parts[-1])
            if rows >= _SAMPLED_ROWS:
                return pa.concat_tables(parts)
    return pa.concat_tables(parts) if parts else None


def _newest_files(edges: tuple[FolderEdge, ...]) -> Iterator[Path]:
    """Files of the edges, the newest of each edge first; manifests are read one by one."""
    for edge in edges:
        for number in reversed(edge.numbers()):
            manifest = edge.manifest(number)
            for file in manifest.files if manifest is not None else ():
                yield edge.folder / file.path


def hottest(rows: pa.Table) -> HotKey | None:
    """
    >>> hottest(pa.table({"user": [7, 7, 7, 1]}))
    HotKey(key='user=7', share=0.75)
    >>> hottest(pa.table({"user": [1, 2, 3, 4, 5]}))
    """
    if not len(rows):
        return None
    counted = rows.group_by(rows.column_names).aggregate([([], "count_all")]).sort_by([("count_all", "descending")])
    share = counted["count_all"][0].as_py() / len(rows)
    key = ", ".join(f"{name}={counted[name][0].as_py()}" for name in rows.column_names)
    return HotKey(key[:200], round(share, 4)) if share >= _LEAST_SHARE else None


def read_hot_key(path: Path) -> HotKey | None:
    text = read_if_there(path)
    with contextlib.suppress(ValueError, TypeError):
        return HotKey(**json.loads(text)) if text else None
    return None
