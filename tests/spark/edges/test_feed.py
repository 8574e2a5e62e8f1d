from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sluicegate.errors import BadInput, EnvironmentLacks
from sluicegate.spark.edges.feed import Feed
from sluicegate.spark.edges.folder import FolderEdge

SCHEMA = (
    '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}},'
    '{"name":"at","type":"timestamp","nullable":true,"metadata":{}}]}'
)


@pytest.fixture
def edge(tmp_path: Path) -> FolderEdge:
    edge = FolderEdge(tmp_path / "clicks")
    edge.create(SCHEMA)
    return edge


def rows(first: int, count: int) -> pa.Table:
    ids = pa.array(range(first, first + count), pa.int64())
    return pa.table({"id": ids, "at": ids.cast(pa.timestamp("us", "UTC"))})


def all_ids(edge: FolderEdge) -> list[int]:
    files = [edge.folder / file.path for number in edge.numbers() for file in edge.need(number).files]
    return [int(str(value)) for path in files for value in pq.read_table(path).column("id").to_pylist()]


def test_a_feed_that_is_opened_again_goes_on_after_the_last_table(edge: FolderEdge) -> None:
    first = Feed(edge.folder)
    first.append(rows(0, 3))
    first.append(rows(3, 2))
    again = Feed(edge.folder)
    assert (again.published, again.rows) == (2, 5)
    again.append(rows(5, 1))
    assert all_ids(edge) == list(range(6))
    assert edge.need(2).rows_after == 6


def test_the_output_of_an_operator_is_not_fed_and_nothing_of_it_is_deleted(tmp_path: Path) -> None:
    """Its next batch would find its number taken, and publish nothing; what it has written would be swept."""
    for name in ("rows", "counts"):
        FolderEdge(tmp_path / "edges" / name).create(SCHEMA)
    written = tmp_path / "edges" / "counts" / "data" / "0-1f2e"
    written.mkdir()
    nodes = [{"name": "count", "writes": ["counts"]}]
    (tmp_path / "pipeline.json").write_text(json.dumps({"sources": ["rows"], "nodes": nodes}))
    with pytest.raises(BadInput, match="edge 'counts' is written by operator 'count': feed a source, there is rows"):
        Feed(tmp_path / "edges" / "counts")
    assert written.exists()
    Feed(tmp_path / "edges" / "rows").append(rows(0, 1))


def test_columns_that_are_not_the_sources_are_refused_and_nothing_is_published(edge: FolderEdge) -> None:
    feed = Feed(edge.folder)
    for wrong in (pa.table({"id": [1]}), rows(0, 1).rename_columns(["ID", "at"]), rows(0, 1).select(["at", "id"])):
        with pytest.raises(BadInput, match="source 'clicks' takes"):
            feed.append(wrong)
    assert (feed.published, edge.numbers()) == (0, [])


def test_two_feeds_of_one_source_take_turns_and_lose_nothing(edge: FolderEdge) -> None:
    feeds = [Feed(edge.folder), Feed(edge.folder)]

    def put(feed: Feed, first: int) -> None:
        for number in range(20):
            feed.append(rows(first + number, 1))

    threads = [threading.Thread(target=put, args=(feed, 100 * index)) for index, feed in enumerate(feeds)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(all_ids(edge)) == [*range(20), *range(100, 120)]
    assert edge.need(39).rows_after == 40


def test_a_feed_finds_the_end_although_all_it_knew_was_deleted(edge: FolderEdge) -> None:
    stale, other = Feed(edge.folder), Feed(edge.folder)
    stale.append(rows(0, 1))
    for number in range(1, 5):
        other.append(rows(number, 1))
    edge.clean(4)
    stale.append(rows(5, 1))
    assert (edge.numbers(), edge.need(5).rows_after) == ([4, 5], 6)


def test_a_table_without_rows_leaves_no_file(edge: FolderEdge) -> None:
    feed = Feed(edge.folder)
    feed.append(rows(0, 0))
    assert (feed.published, feed.rows, list((edge.folder / "data").iterdir())) == (1, 0, [])


def test_what_a_killed_feed_left_is_removed_when_the_next_opens(edge: FolderEdge) -> None:
    Feed(edge.folder).append(rows(0, 1))
    (edge.folder / "data" / "1-half").mkdir()
    Feed(edge.folder)
    assert len(list((edge.folder / "data").iterdir())) == 1


def test_a_table_that_cannot_be_written_is_told_in_one_line_and_can_be_fed_again(edge: FolderEdge) -> None:
    feed = Feed(edge.folder)
    data = edge.folder / "data"
    data.rmdir()
    data.write_text("in the way")
    with pytest.raises(EnvironmentLacks, match=r"source 'clicks': .*: nothing published"):
        feed.append(rows(0, 1))
    data.unlink()
    data.mkdir()
    feed.append(rows(0, 1))
    assert all_ids(edge) == [0]


def test_births_are_now_unless_told_otherwise(edge: FolderEdge) -> None:
    feed = Feed(edge.folder)
    feed.append(rows(0, 4))
    feed.append(rows(4, 2), born=[(10.0, 1.0), (11.0, 1.0)])
    assert edge.need(0).born.weight == 4
    assert edge.need(1).born.mean_s == 10.5


def test_an_interrupt_just_after_a_table_was_published_leaves_its_rows(
    edge: FolderEdge, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed, publish = Feed(edge.folder), FolderEdge.publish

    def interrupted(*given: Any, **named: Any) -> None:
        publish(*given, **named)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(FolderEdge, "publish", interrupted)
        with pytest.raises(KeyboardInterrupt):
            feed.append(rows(0, 3))
    assert (feed.published, feed.rows) == (1, 3), "where the program resumes, or the rows come twice"
    Feed(edge.folder).append(rows(3, 1))
    assert all_ids(edge) == [0, 1, 2, 3]


def test_a_column_that_once_may_have_had_nulls_stays_so_and_one_that_may_from_now_on_is_noted(tmp_path: Path) -> None:
    edge, strict = FolderEdge(tmp_path / "clicks"), SCHEMA.replace("true", "false")
    edge.create(SCHEMA)
    edge.create(strict)
    assert json.loads(edge.schema_json) == json.loads(SCHEMA)
    other = FolderEdge(tmp_path / "views")
    other.create(strict)
    other.create(SCHEMA)
    assert json.loads(other.schema_json) == json.loads(SCHEMA)
