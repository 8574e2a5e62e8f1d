from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sluicegate.runlog.plan_file import PlanFile
from sluicegate.spark.edges.edge import DurableEdge
from sluicegate.spark.edges.folder import FolderEdge
from sluicegate.spark.edges.seal import sealed
from sluicegate.spark.edges.spoiled import EdgeSpoiled
from sluicegate.spark.pipeline import batch_files
from sluicegate.spark.pipeline.batch_files import _reported_sums
from sluicegate.spark.pipeline.batch_writer import BatchWriter

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


@pytest.mark.parametrize("path", ["data", "x.parquet", "data/../../../x/y", "/etc/x/passwd"])
def test_a_commit_record_that_names_a_file_outside_its_edge_is_refused(tmp_path: Path, path: str) -> None:
    made = writer(tmp_path, "a", "b")
    record = tmp_path / "operators" / "op" / "commits" / "7.json"
    record.parent.mkdir(parents=True)
    record.write_text(sealed(json.dumps({"outputs": {"a": [[path, 3]], "b": []}})))
    with pytest.raises(EdgeSpoiled, match="names a file outside its edge"):
        made.tidy()


def test_sums_of_which_two_attempts_of_a_task_differ_are_computed_from_the_file(tmp_path: Path) -> None:
    """An executor lost after a task's commit: the task runs again and replaces the file, but not the first sums."""
    for attempt, lines in (("1", "a.parquet\t10\tx\nb.parquet\t5\tz\n"), ("2", "a.parquet\t10\ty\n")):
        (tmp_path / f"_sums-{attempt}").write_text(lines)
    assert _reported_sums(tmp_path) == {"b.parquet": (5, "z")}
    assert list(tmp_path.iterdir()) == []


class Tasks:
    """Writes a batch as Spark's tasks do, each reporting what it wrote, and remembers where."""

    def __init__(self, *attempts: tuple[str, dict[str, int]]) -> None:
        self.attempts, self.wrote_to = attempts, list[Path]()

    def __call__(self, batch: object, folder: Path, passing: bool, by_output: bool = False) -> None:
        self.wrote_to.append(folder)
        folder.mkdir(parents=True)
        for attempt, files in self.attempts:
            lines = []
            for name, rows in files.items():
                if rows:
                    pq.write_table(pa.table({"id": list(range(rows))}), folder / name)
                size = (folder / name).stat().st_size if rows else 1
                lines.append(f"{name}\t{size}\tsums\n")
            (folder / f"_sums-attempt_1_0001_m_{attempt}").write_text("".join(lines))


def _one_output(folder: Path, tasks: Tasks, monkeypatch: pytest.MonkeyPatch) -> BatchWriter:
    made = writer(folder, "")
    monkeypatch.setattr(batch_files, "_save", tasks)
    return made


def test_a_task_that_comes_back_late_cannot_touch_what_is_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hadoop's committer deletes the file of another attempt before it renames its own: all paths that it knows."""
    tasks = Tasks(("000000_0", {"a.parquet": 3}))
    made = _one_output(tmp_path, tasks, monkeypatch)
    files = made._files(None, 4)[""]  # type: ignore[arg-type]
    for folder in tasks.wrote_to:
        for path in folder.glob("*"):
            path.unlink()
    assert [(file.rows, (made.writes[""].folder / file.path).exists()) for file in files] == [(3, True)]


@pytest.mark.parametrize(
    "attempts",
    [
        # a file that is told and was deleted
        [("000000_0", {"a.parquet": 3, "b.parquet": 0})],
        # two attempts, of which the first drew other rows
        [("000000_0", {"a.parquet": 3, "b.parquet": 2}), ("000000_7", {"a.parquet": 3})],
    ],
)
def test_a_batch_whose_tasks_were_lost_while_they_committed_runs_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attempts: list[tuple[str, dict[str, int]]]
) -> None:
    made = _one_output(tmp_path, Tasks(*attempts), monkeypatch)
    with pytest.raises(OSError, match=r"executor was lost while its task wrote 4-.*: the batch runs again"):
        made._files(None, 4)  # type: ignore[arg-type]
    assert homes(made.writes[""]) == []


def test_a_file_that_no_task_reported_is_not_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An executor killed while its task moved its files: the sums were to come after them."""
    tasks = Tasks(("000000_0", {"a.parquet": 3}))

    def save(batch: object, folder: Path, passing: bool, by_output: bool = False) -> None:
        tasks(batch, folder, passing)
        pq.write_table(pa.table({"id": [9]}), folder / "left.parquet")

    made = writer(tmp_path, "")
    monkeypatch.setattr(batch_files, "_save", save)
    with pytest.raises(OSError, match="runs again"):
        made._files(None, 4)  # type: ignore[arg-type]
