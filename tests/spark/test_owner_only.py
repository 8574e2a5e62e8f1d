"""What a pipeline leaves on disk is for its owner alone, whatever rights the folder had that it was given."""

from __future__ import annotations

import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.spark.other_user import as_nobody, needs_root
from tests.spark.small_pipelines import numbers, same, simple

from sluicegate.runlog.files import owner_only_folder, write_whole
from sluicegate.runlog.layout import Layout
from sluicegate.spark.pipeline.runtime import start


def rights(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(scope="module")
def open_folder(spark: SparkSession) -> Iterator[Path]:
    """A folder that everybody can read, in which a pipeline has run."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        running = start(simple(same), spark, folder)
        running.feed("lines").append(numbers(5))
        running.drain()
        running.stop()
        yield folder


def test_a_folder_that_was_there_keeps_its_rights_and_what_is_made_in_it_is_closed(open_folder: Path) -> None:
    assert rights(open_folder) == 0o755
    made = list(open_folder.iterdir())
    assert {path.name for path in made} >= {"edges", "operators", "pipeline.json", "plan.json", "lock"}
    assert {path.name: oct(rights(path)) for path in made if rights(path) & 0o077} == {}


@needs_root
def test_another_user_reads_neither_rows_nor_checkpoints(open_folder: Path) -> None:
    layout = Layout(open_folder)
    kept = [layout.checkpoint("work"), layout.edge("work"), layout.description, layout.batches("work")]
    assert all(path.exists() for path in kept)
    assert as_nobody(["ls", str(open_folder)]).returncode == 0
    for path in kept:
        done = as_nobody(["ls" if path.is_dir() else "cat", str(path)])
        assert (done.returncode != 0, "Permission denied" in done.stderr) == (True, True), path


def test_a_folder_that_is_made_is_closed_and_so_are_its_new_parents(tmp_path: Path) -> None:
    owner_only_folder(tmp_path / "a" / "b")
    write_whole(tmp_path / "a" / "b" / "c" / "file", "text")
    made = [tmp_path / "a", tmp_path / "a" / "b", tmp_path / "a" / "b" / "c"]
    assert [rights(path) for path in made] == [0o700] * 3
    assert rights(made[-1] / "file") == 0o600
