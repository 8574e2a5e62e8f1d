from __future__ import annotations

import json
from pathlib import Path

import pytest

from sluicegate.runlog.plan_file import PlanFile
from sluicegate.spark.edges.edge import DurableEdge
from sluicegate.spark.edges.folder import FolderEdge
from sluicegate.spark.edges.spoiled import EdgeSpoiled
from sluicegate.spark.pipeline.batch_writer import BatchWriter, _told_sums

SCHEMA = '{"type":"struct","fields":[]}'


def writer(folder: Path, *outputs: str) -> BatchWriter:
    edges = {output: FolderEdge(folder / "edges" / f"op.{output}") for output in outputs}
    for edge in edges.values():
        edge.create(SCHEMA)
    return BatchWriter("op", folder / "operators" / "op" / "checkpoint", PlanFile(folder / "plan.json"), {}, edges)


def homes(edge: DurableEdge) -> list[str]:
    return sorted(path.name for path in (edge.folder / "data").iterdir())


def test_files_that_a_commit_record_names_survive_although_no_edge_shows_them_yet(tmp_path: Path) -> None:
    """A driver killed between the record and the renames: the batch that runs again publishes those very files."""
    made = writer(tmp_path, "a", "b")
    for edge in made.writes.values():
        for home in ("7-committed", "7-failed"):
            (edge.folder / "data" / home).mkdir()
    record = tmp_path / "operators" / "op" / "commits" / "7.json"
    record.parent.mkdir(parents=True)
    record.write_text(json.dumps({"a": [["data/7-committed/x.parquet", 3]], "b": []}))
    made.tidy()
    assert [homes(edge) for edge in made.writes.values()] == [["7-committed"], ["7-committed"]]


def test_drafts_of_batches_that_failed_are_removed(tmp_path: Path) -> None:
    made = writer(tmp_path, "a", "b")
    (tmp_path / "operators" / "op" / "drafts" / "3-x" / "output=a").mkdir(parents=True)
    made.tidy()
    assert not (tmp_path / "operators" / "op" / "drafts").exists()


def test_a_spoiled_commit_record_is_refused_as_long_as_its_batch_may_run_again(tmp_path: Path) -> None:
    made = writer(tmp_path, "a", "b")
    record = tmp_path / "operators" / "op" / "commits" / "7.json"
    record.parent.mkdir(parents=True)
    record.write_text('{"a": [["data/7-x/x.par')
    with pytest.raises(EdgeSpoiled, match=r"operator 'op': .*7.json is torn or overwritten: restore it"):
        made.tidy()
    (made.checkpoint / "commits").mkdir(parents=True)
    (made.checkpoint / "commits" / "7").write_text("v1\n{}")
    made.tidy()


def test_sums_that_two_attempts_of_a_task_tell_differently_are_computed_from_the_file(tmp_path: Path) -> None:
    """An executor lost after a task's commit: the task runs again and replaces the file, but not the first sums."""
    for attempt, lines in (("1", "a.parquet\t10\tx\nb.parquet\t5\tz\n"), ("2", "a.parquet\t10\ty\n")):
        (tmp_path / f"_sums-{attempt}").write_text(lines)
    assert _told_sums(tmp_path) == {"b.parquet": (5, "z")}
    assert list(tmp_path.iterdir()) == []
