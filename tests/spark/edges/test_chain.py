from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.spark.edges.checking import check_data

from sluicegate.domain.births import Births
from sluicegate.spark.edges.chain import check_reader, check_writer, read_mark, write_mark
from sluicegate.spark.edges.file_sums import BLOCK_BYTES, sums_of
from sluicegate.spark.edges.folder import FolderEdge
from sluicegate.spark.edges.manifest import DataFile
from sluicegate.spark.edges.offsets import ends, next_of, offset_of
from sluicegate.spark.edges.spoiled import EdgeSpoiled

SCHEMA = '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}'


def made(folder: Path, count: int = 5, rows: int = 10) -> FolderEdge:
    edge = FolderEdge(folder)
    edge.create(SCHEMA)
    for number in range(count):
        publish(edge, number, rows)
    return edge


def publish(edge: FolderEdge, number: int, rows: int = 10) -> None:
    path = edge.folder / "data" / f"{number}-x" / "part-0.parquet"
    path.parent.mkdir()
    path.write_bytes(bytes([number]) * rows)
    file = DataFile(f"data/{number}-x/part-0.parquet", rows, *sums_of(path))
    edge.publish(number, [file], Births.of([(1.0, 10.0)]), 2.0)


@pytest.fixture
def edge(tmp_path: Path) -> FolderEdge:
    return made(tmp_path / "edge")


@pytest.mark.parametrize("lost", range(5))
def test_a_manifest_that_is_gone_is_missed_by_readers_and_at_the_start(edge: FolderEdge, lost: int) -> None:
    edge.manifest_path(lost).unlink()
    for look in (lambda: list(edge.since(min(lost, 2))), edge.whole, edge.sweep):
        with pytest.raises(
            EdgeSpoiled, match=f"^edge 'edge': manifest {lost} is missing, and 5 were published: restore"
        ):
            look()


def test_what_was_deleted_after_all_had_read_it_is_not_missed(edge: FolderEdge) -> None:
    edge.clean(3)
    assert [one.number for one in edge.whole()] == [3, 4]
    assert list(edge.since(0)) == [], "a look that began before the deletion"
    edge.manifest_path(3).unlink()
    with pytest.raises(EdgeSpoiled, match="manifest 3 is missing"):
        edge.whole()
    with pytest.raises(EdgeSpoiled, match="manifest 3 is missing"):
        list(edge.since(3))


@settings(max_examples=60)
@given(share=st.floats(0, 1), bit=st.integers(0, 7))
def test_no_flipped_bit_of_a_manifest_goes_unnoticed(
    tmp_path_factory: pytest.TempPathFactory, share: float, bit: int
) -> None:
    edge = made(tmp_path_factory.mktemp("flip") / "edge", 2)
    path = edge.manifest_path(1)
    text = bytearray(path.read_bytes())
    text[round(share * (len(text) - 1))] ^= 1 << bit
    path.write_bytes(bytes(text))
    with pytest.raises(EdgeSpoiled, match="manifest 1 "):
        edge.whole()


def test_a_manifest_of_another_run_does_not_fit_into_the_chain(edge: FolderEdge, tmp_path: Path) -> None:
    other = made(tmp_path / "other", rows=11)
    edge.manifest_path(2).write_text(other.manifest_path(2).read_text())
    for look in (edge.whole, lambda: list(edge.since(0)), lambda: edge.between(2, 3)):
        with pytest.raises(EdgeSpoiled, match="does not follow manifest 1, one of them is of another run"):
            look()
    edge.manifest_path(2).write_text(edge.manifest_path(1).read_text())
    with pytest.raises(EdgeSpoiled, match="manifest 2 is a copy of manifest 1"):
        edge.need(2)


def test_a_writer_does_not_go_on_after_a_manifest_that_is_gone(edge: FolderEdge) -> None:
    edge.manifest_path(4).unlink()
    with pytest.raises(EdgeSpoiled, match="manifest 4 is missing, and manifest 5 would follow it"):
        publish(edge, 5)


def test_manifests_of_older_versions_are_read_and_the_chain_goes_on_from_them(tmp_path: Path) -> None:
    edge = made(tmp_path / "edge", 2)
    for number in range(2):
        read = json.loads(edge.manifest_path(number).read_text())
        old = {key: value for key, value in read.items() if key not in ("before", "sum")}
        old["files"] = [file[:2] for file in old["files"]]
        edge.manifest_path(number).write_text(json.dumps(old))
    for mark in ("newest", "oldest"):
        (edge.folder / mark).unlink()
    (edge.folder / "edge.json").write_text(SCHEMA)
    edge.create(SCHEMA)
    publish(edge, 2)
    assert [one.rows_before for one in edge.whole()] == [0, 10, 20]
    assert check_data(edge) == 3
    edge.manifest_path(1).write_text(
        edge.manifest_path(1).read_text().replace('"published_s": 2.0', '"published_s": 3.0')
    )
    with pytest.raises(EdgeSpoiled, match="manifest 2 does not follow manifest 1"):
        edge.whole()


def test_an_edge_that_is_shorter_than_its_writer_or_reader_says_is_refused(edge: FolderEdge) -> None:
    check_writer(edge, "op", 4)
    check_reader(edge, "op", 5)
    with pytest.raises(EdgeSpoiled, match="manifest 6 is missing, and operator 'op' has committed its batch"):
        check_writer(edge, "op", 6)
    with pytest.raises(EdgeSpoiled, match="manifest 5 is missing, and operator 'op' has read it"):
        check_reader(edge, "op", 6)


def test_a_batch_that_runs_again_may_publish_again_what_a_power_failure_took(edge: FolderEdge) -> None:
    edge.manifest_path(4).unlink()
    edge.withdraw(4)
    edge.sweep()
    publish(edge, 4)
    assert len(edge.whole()) == 5


def test_data_is_checked_block_by_block(tmp_path: Path) -> None:
    edge = made(tmp_path / "edge", 1, rows=2 * BLOCK_BYTES + 5)
    assert check_data(edge) == 1
    path = edge.folder / "data" / "0-x" / "part-0.parquet"
    with path.open("r+b") as file:
        file.seek(BLOCK_BYTES + 7)
        file.write(b"\1")
    with pytest.raises(EdgeSpoiled, match=r"part-0.parquet was changed .* bytes 1048576 to 2097152 does not match"):
        check_data(edge)
    path.write_bytes(b"short")
    with pytest.raises(EdgeSpoiled, match="has 5 bytes, 2097157 were written"):
        check_data(edge)


def test_a_record_that_is_torn_says_nothing(tmp_path: Path) -> None:
    mark = tmp_path / "newest"
    assert read_mark(mark) is None
    mark.write_bytes(b"garbage " * 9)
    assert read_mark(mark) is None
    write_mark(mark, 41)
    write_mark(mark, 42)
    assert read_mark(mark) == 42
    mark.write_text(mark.read_text().replace("42", "43"))
    assert read_mark(mark) is None


def test_an_offset_that_was_changed_is_refused_and_one_of_an_older_version_is_not() -> None:
    assert next_of(offset_of("edge", 7)) == 7 == next_of('{"edge": "edge", "next": 7}')
    with pytest.raises(ValueError, match="was changed"):
        next_of(offset_of("edge", 7).replace("7,", "8,"))


def test_offsets_of_another_operator_are_refused_and_those_of_older_versions_name_none(tmp_path: Path) -> None:
    """Two counts of one stream have checkpoints that differ in nothing but their state."""
    for name, text in (("mine", offset_of("edge", 7, "mine")), ("theirs", offset_of("edge", 7, "mine"))):
        (tmp_path / name / "checkpoint" / "offsets").mkdir(parents=True)
        (tmp_path / name / "checkpoint" / "offsets" / "3").write_text(f"v1\n{{}}\n{text}")
    assert ends(tmp_path / "mine" / "checkpoint", 3) == {"edge": 7}
    with pytest.raises(EdgeSpoiled, match=r"operator 'theirs', checkpoint: .*/3 is of operator 'mine': restore it"):
        ends(tmp_path / "theirs" / "checkpoint", 3)
    (tmp_path / "theirs" / "checkpoint" / "offsets" / "3").write_text(f"v1\n{{}}\n{offset_of('edge', 7)}")
    assert ends(tmp_path / "theirs" / "checkpoint", 3) == {"edge": 7}
    with pytest.raises(ValueError, match="was changed"):
        next_of(offset_of("edge", 7, "mine").replace("mine", "your"))


def test_a_record_that_cannot_be_written_does_not_undo_a_publication(edge: FolderEdge) -> None:
    """Else a feed would be told to append a table again that is there."""
    (edge.folder / "newest").unlink()
    (edge.folder / "newest").mkdir()
    publish(edge, 5)
    assert [one.number for one in edge.whole()] == list(range(6))
