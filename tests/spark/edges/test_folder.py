from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluicegate.domain.births import Births
from sluicegate.errors import BadInput
from sluicegate.spark.edges.folder import FolderEdge
from sluicegate.spark.edges.manifest import DataFile
from sluicegate.spark.edges.spoiled import EdgeSpoiled

SCHEMA = '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}'
OTHER = SCHEMA.replace("long", "string")


@pytest.fixture
def edge(tmp_path: Path) -> FolderEdge:
    return made(tmp_path / "edge")


def made(folder: Path) -> FolderEdge:
    edge = FolderEdge(folder)
    edge.create(SCHEMA)
    return edge


def home(edge: FolderEdge, name: str) -> DataFile:
    (edge.folder / "data" / name).mkdir()
    (edge.folder / "data" / name / "part-0.parquet").write_text("rows")
    return DataFile(f"data/{name}/part-0.parquet", 10)


def publish(edge: FolderEdge, number: int) -> DataFile:
    file = home(edge, f"{number}-x")
    edge.publish(number, [file], Births.of([(1.0, 10.0)]), 2.0)
    return file


def homes(edge: FolderEdge) -> set[str]:
    return {path.name for path in (edge.folder / "data").iterdir()}


def test_a_batch_that_is_published_twice_stays_as_it_was_published_first(edge: FolderEdge) -> None:
    first = edge.publish(0, [DataFile("data/a/x.parquet", 3)], Births(), 1.0)
    again = edge.publish(0, [DataFile("data/b/x.parquet", 9)], Births(), 2.0)
    assert again == first == edge.manifest(0)


@pytest.mark.parametrize("path", ["data/..", "data/../../other/x.parquet", "/etc/passwd", "other/x", "data/a/..", ""])
def test_a_manifest_that_names_a_file_outside_its_edge_is_refused_and_nothing_is_deleted(
    edge: FolderEdge, path: str
) -> None:
    for number in range(2):
        publish(edge, number)
    hostile = replace(edge.need(0), files=(DataFile(path, 10),))
    edge.manifest_path(0).write_text(hostile.to_json())
    with pytest.raises(EdgeSpoiled, match="manifest 0 names a file outside its edge: restore"):
        edge.whole()
    edge.clean(1)
    assert homes(edge) == {"1-x"}, "by its number"
    assert (edge.folder / "edge.json").exists()


def test_an_edge_begun_by_a_start_that_was_given_up_begins_where_its_writer_is_by_now(edge: FolderEdge) -> None:
    for number in (5, 5, 9):
        edge.begin_after(number, 1.0)
        assert [one.number for one in edge.whole()] == [number]
    publish(edge, 10)
    edge.begin_after(9, 2.0)
    assert [one.number for one in edge.whole()] == [9, 10]


def test_a_folder_that_cannot_be_listed_is_not_taken_for_an_empty_one(
    edge: FolderEdge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``Path.glob`` passes over it, and a sweep would delete all rows as named by no manifest."""
    publish(edge, 0)
    (edge.folder / "newest").unlink()

    def refused(path: object = ".") -> Any:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(os, "scandir", refused)
    monkeypatch.setattr(os, "listdir", refused)
    with pytest.raises(PermissionError):
        edge.numbers()
    with pytest.raises(PermissionError):
        edge.newest()
    monkeypatch.undo()
    assert edge.numbers() == [0]
    assert FolderEdge(edge.folder / "none").numbers() == []


def test_rows_are_counted_on_from_manifest_to_manifest_also_after_cleaning(edge: FolderEdge) -> None:
    for number in range(4):
        publish(edge, number)
    edge.clean(4)
    publish(edge, 4)
    assert edge.need(4).rows_before == 40


def test_a_watermark_is_carried_on_and_never_goes_back_also_after_cleaning(edge: FolderEdge) -> None:
    for number, watermark_ms in enumerate([None, 5_000, 4_000, None]):
        edge.publish(number, [], Births(), 1.0, watermark_ms=watermark_ms)
    assert [(edge.need(n).watermark_ms, edge.need(n).advances) for n in range(4)] == [
        (None, False),
        (5_000, True),
        (5_000, False),
        (5_000, False),
    ]
    edge.clean(4)
    edge.publish(4, [], Births(), 1.0, watermark_ms=6_000)
    assert edge.manifest(4) == edge.publish(4, [], Births(), 2.0)
    assert edge.need(4).advances


def test_files_without_rows_are_not_on_the_edge(edge: FolderEdge) -> None:
    manifest = edge.publish(0, [DataFile("data/a/x.parquet", 0), DataFile("data/a/y.parquet", 2)], Births(), 1.0)
    assert [file.rows for file in manifest.files] == [2]


def test_what_is_deleted_is_what_every_reader_has_taken_and_the_newest_manifest_stays(edge: FolderEdge) -> None:
    for number in range(5):
        publish(edge, number)
    assert edge.clean(3) == 3
    assert (edge.numbers(), homes(edge)) == ([3, 4], {"3-x", "4-x"})
    assert edge.clean(99) == 1
    assert edge.numbers() == [4]
    assert edge.clean(99) == 0


@settings(max_examples=15)
@given(st.integers(1, 6), st.lists(st.integers(0, 8), max_size=3))
def test_cleaning_never_takes_what_the_slowest_reader_needs(
    tmp_path_factory: pytest.TempPathFactory, count: int, readers: list[int]
) -> None:
    edge = made(tmp_path_factory.mktemp("clean") / "edge")
    for number in range(count):
        publish(edge, number)
    edge.clean(min(readers, default=0))
    for reader in readers:
        assert all(edge.has(number) for number in range(reader, count))
        assert {f"{number}-x" for number in range(reader, count)} <= homes(edge)
        assert edge.serves(min(reader, count))


def test_an_edge_serves_a_reader_only_where_it_would_miss_nothing(edge: FolderEdge) -> None:
    assert edge.serves(0)
    assert not edge.serves(1), "the reader has taken what the edge never had"
    for number in range(4):
        publish(edge, number)
    edge.clean(2)
    assert [number for number in range(7) if edge.serves(number)] == [2, 3, 4]


def test_a_sweep_removes_only_data_that_nobody_names(edge: FolderEdge) -> None:
    publish(edge, 0)
    home(edge, "1-failed")
    home(edge, "1-still-to-be-published")
    (edge.folder / "manifests" / ".000000000001.json.abcd").write_text("half")
    assert edge.sweep({"1-still-to-be-published"}) == 1
    assert homes(edge) == {"0-x", "1-still-to-be-published"}
    assert [path.name for path in (edge.folder / "manifests").iterdir()] == ["000000000000.json"]


def test_new_manifests_are_found_by_looking_for_the_next_number(edge: FolderEdge) -> None:
    for number in range(3):
        publish(edge, number)
    assert [manifest.number for manifest in edge.since(1)] == [1, 2]
    assert list(edge.since(3)) == []


def test_a_manifest_that_a_reader_asks_for_and_that_is_gone_is_told_in_one_line(edge: FolderEdge) -> None:
    with pytest.raises(BadInput, match="manifest 7 is missing"):
        edge.need(7)


def test_an_edge_keeps_its_columns_but_not_its_nullability(edge: FolderEdge) -> None:
    edge.create(SCHEMA.replace("true", "false"))
    with pytest.raises(BadInput, match="holds id long, but is now to carry id string"):
        edge.create(OTHER)
    assert edge.schema_json == SCHEMA


def test_an_edge_that_was_never_made_says_so(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="start its pipeline first"):
        _ = FolderEdge(tmp_path / "none").schema_json
