"""The sample of newest rows in which a hot key is looked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame

from sluicegate.domain.births import Births
from sluicegate.spark.edges.folder import FolderEdge
from sluicegate.spark.edges.manifest import DataFile
from sluicegate.spark.observe.hot_key import HotKeys, newest_rows

SCHEMA = json.dumps({"type": "struct", "fields": [{"name": "user", "type": "long"}]})
UNEVEN = (1.0, 9.0, 1.0, 1.0)


@pytest.fixture
def edge(tmp_path: Path) -> FolderEdge:
    made = FolderEdge(tmp_path / "rows")
    made.create(SCHEMA)
    return made


def put(edge: FolderEdge, rows: pa.Table, rows_in_group: int) -> None:
    file = DataFile("data/0-x/part-0.parquet", len(rows))
    (edge.folder / file.path).parent.mkdir(parents=True)
    pq.write_table(rows, edge.folder / file.path, row_group_size=rows_in_group)
    edge.publish(0, [file], Births.of([(0.0, float(len(rows)))]), 0.0)


def test_of_a_file_with_many_rows_only_the_newest_are_read(edge: FolderEdge) -> None:
    put(edge, pa.table({"user": range(100_000)}), rows_in_group=8_000)
    found = newest_rows((edge,), ["user"])
    assert found is not None
    assert len(found) == 20_000  # of groups of 8,000, 4,000 and, the last, 4,000 rows
    assert set(found["user"].to_pylist()) == set(range(80_000, 100_000))


def test_whatever_is_wrong_with_the_rows_the_pipeline_goes_on(edge: FolderEdge, tmp_path: Path) -> None:
    put(edge, pa.table({"user": pa.array([2**62] * 9, pa.timestamp("us"))}), rows_in_group=9)  # no date of Python's
    seen = HotKeys(cast("DataFrame", None), tmp_path / "hot.json", (edge,), ["user"])
    seen.look(UNEVEN)
    for manifest in edge.folder.rglob("*.json"):
        manifest.write_text("{")
    seen._next_s = 0.0
    seen.look(UNEVEN)
    assert not (tmp_path / "hot.json").exists()
