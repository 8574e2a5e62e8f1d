"""What clumsy hands do to a pipeline's folder, running or not: the answer is exact, or one line says what is wrong."""

from __future__ import annotations

import contextlib
import shutil
import threading
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.spark.small_pipelines import numbers

from sluicegate.errors import BadInput, EnvironmentLacks, SluicegateError
from sluicegate.runlog.failures import read_failures
from sluicegate.runlog.fault_point import FAILS, VARIABLE
from sluicegate.runlog.layout import Layout
from sluicegate.spark.cluster.waiting import wait_until
from sluicegate.spark.edges.offsets import last_batch
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.failures import ended_by
from sluicegate.spark.pipeline.runtime import Running, start
from sluicegate.spark.pipeline.verify import verify

pytestmark = pytest.mark.slow
ROWS = 60


def rows(frame: DataFrame) -> DataFrame:
    return frame.selectExpr("id", "id % 5 AS five", "id % 7 AS seven")


def fives(frame: DataFrame) -> DataFrame:
    return frame.selectExpr("five AS key").groupBy("key").count()


def sevens(frame: DataFrame) -> DataFrame:
    return frame.selectExpr("seven AS key").groupBy("key").count()


def resumed(spark: SparkSession, folder: Path) -> Running:
    """Two counts of one stream, whose states and checkpoints have the same shape."""
    made = Pipeline("clumsy")
    read = made.operator("read", rows, made.source("rows", "id long"), fuse=False)
    for name, count in (("fives", fives), ("sevens", sevens)):
        made.sink(name, made.operator(name, count, read, stateful=True, key_groups=2))
    return start(made, spark, folder)


def fed(running: Running, upto: int) -> None:
    """Tables until there are ``upto``, from where the source stands."""
    feed = running.feed("rows")
    while feed.published < upto:
        feed.append(numbers(ROWS, feed.rows))


def answers(running: Running) -> dict[str, dict[int, int]]:
    """The last count by key; counts only grow."""
    found: dict[str, dict[int, int]] = {}
    for name in ("fives", "sevens"):
        counts = found.setdefault(name, {})
        for row in running.read(name).collect():
            counts[row["key"]] = max(counts.get(row["key"], 0), row["count"])
    return found


def right(tables: int) -> dict[str, dict[int, int]]:
    ids = range(tables * ROWS)
    return {"fives": dict(Counter(i % 5 for i in ids)), "sevens": dict(Counter(i % 7 for i in ids))}


def in_one_line(problem: SluicegateError) -> str:
    assert "\n" not in str(problem)
    return str(problem)


def refused(spark: SparkSession, folder: Path) -> str:
    with pytest.raises(SluicegateError) as told, resumed(spark, folder):
        pass
    return in_one_line(told.value)


@pytest.fixture(scope="module")
def story(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder after three tables; ``early`` beside it is as it was after one."""
    folder = tmp_path_factory.mktemp("clumsy") / "run"
    for upto in (1, 2, 3):
        with resumed(spark, folder) as running:
            fed(running, upto)
            running.drain()
        if upto == 1:
            shutil.copytree(folder, folder.with_name("early"))
    return folder


@pytest.fixture
def folder(story: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(story, tmp_path / "run"))


def test_two_operators_whose_folders_were_swapped_are_refused(spark: SparkSession, folder: Path) -> None:
    """Their checkpoints have the same shape and the same batches: Spark would count on in the other's state."""
    one, other, aside = (folder / "operators" / name for name in ("fives", "sevens", "aside"))
    for origin, target in ((one, aside), (other, one), (aside, other)):
        origin.rename(target)
    assert "is of operator 'sevens': restore it from a backup" in refused(spark, folder)
    assert any("is of operator 'sevens'" in fault for fault in verify(folder).faults)
    for origin, target in ((one, aside), (other, one), (aside, other)):
        origin.rename(target)
    with resumed(spark, folder) as running:
        fed(running, 4)
        running.drain()
        assert answers(running) == right(4)


def test_an_old_backup_of_the_whole_goes_on_from_there_and_of_a_part_is_refused(
    spark: SparkSession, story: Path, folder: Path
) -> None:
    early = story.with_name("early")
    for part in ("operators/fives", "operators/read", "edges/rows", "edges/read"):
        kept = folder / "kept"
        (folder / part).rename(kept)
        shutil.copytree(early / part, folder / part)
        assert "restore" in refused(spark, folder), part
        assert not verify(folder).sound, part
        shutil.rmtree(folder / part)
        kept.rename(folder / part)
    shutil.rmtree(folder)
    shutil.copytree(early, folder)
    with resumed(spark, folder) as running:
        assert running.feed("rows").published == 1
        fed(running, 4)
        running.drain()
        assert answers(running) == right(4)


def test_a_folder_that_was_moved_or_is_reached_by_a_link_goes_on(
    spark: SparkSession, folder: Path, tmp_path: Path
) -> None:
    moved, link = tmp_path / "elsewhere" / "it is here [1]", tmp_path / "link"
    moved.parent.mkdir()
    folder.rename(moved)
    link.symlink_to(moved)
    for upto, path in ((4, moved), (5, link)):
        with resumed(spark, path) as running:
            with pytest.raises(BadInput, match=r"runs in .* already"):
                resumed(spark, moved if path is link else link)
            fed(running, upto)
            running.drain()
            assert answers(running) == right(upto)


def test_a_folder_deleted_under_its_pipeline_ends_it_with_one_line_and_the_next_is_not_written_into(
    spark: SparkSession, folder: Path
) -> None:
    with resumed(spark, folder) as running:
        fed(running, 4)
        shutil.rmtree(folder, ignore_errors=True)
        assert wait_until(lambda: running.problem is not None or bool(running.stopped), 60.0, 0.1)
        with pytest.raises(SluicegateError) as told:
            running.wait(60.0)
        assert "was deleted or moved while its pipeline ran" in in_one_line(told.value)
    shutil.rmtree(folder, ignore_errors=True)
    with resumed(spark, folder) as running:
        fed(running, 2)
        running.drain()
        assert answers(running) == right(2)


def published(folder: Path) -> list[Path]:
    """What says which rows there are and which batches are done."""
    return [path for path in sorted(folder.rglob("*")) if path.parent.name in ("manifests", "commits", folder.name)]


def test_a_folder_replaced_under_its_pipeline_is_left_as_it_is(spark: SparkSession, story: Path, folder: Path) -> None:
    """Else the old pipeline would put its batches among those of whoever runs there now."""
    other = shutil.copytree(story.with_name("early"), folder.with_name("other"))
    with resumed(spark, folder) as running:
        fed(running, 5)
        folder.rename(folder.with_name("aside"))
        other.rename(folder)  # at once: the pipeline makes missing folders anew
        there = published(folder)
        assert wait_until(lambda: running.problem is not None, 60.0, 0.05)
        with pytest.raises(SluicegateError, match="was replaced by another folder while its pipeline ran"):
            running.check()
    assert published(folder) == there
    with resumed(spark, folder) as running:
        fed(running, 3)
        running.drain()
        assert answers(running) == right(3)


def test_a_batch_that_another_pipeline_planned_here_is_deleted_at_the_next_start(
    spark: SparkSession, story: Path, folder: Path
) -> None:
    """As Spark leaves it when a folder is replaced while a batch is being planned."""
    shutil.rmtree(folder)
    shutil.copytree(story.with_name("early"), folder)
    for name in ("read", "fives"):
        here, later = (Layout(one).checkpoint(name) for one in (folder, story))
        number, done = last_batch(later), last_batch(here)
        assert number is not None
        assert done is not None
        assert number > done + 1
        shutil.copy(later / "offsets" / str(number), here / "offsets" / str(number))
    assert verify(folder).sound
    with resumed(spark, folder) as running:
        fed(running, 3)
        running.drain()
        assert answers(running) == right(3)


@pytest.mark.parametrize("name", ["read", "fives"])
def test_a_checkpoint_deleted_while_its_query_runs_is_exact_or_one_line_and_never_wrong(
    spark: SparkSession, folder: Path, name: str
) -> None:
    backup = folder.with_name("backup")
    with resumed(spark, folder) as running:
        fed(running, 4)
        running.drain()
        shutil.rmtree(running.layout.checkpoint(name))
        try:
            fed(running, 6)
            running.drain(90.0)
        except SluicegateError as problem:
            in_one_line(problem)
        else:
            assert answers(running) == right(6)
    shutil.copytree(folder, backup)
    try:
        with resumed(spark, folder) as running:
            fed(running, 7)
            running.drain(90.0)
            found: object = answers(running)
    except SluicegateError as problem:
        in_one_line(problem)
        found = None
    if found is None:
        assert not verify(backup).sound, "what a start refuses, verify finds"
    else:
        assert found == right(7)


def test_a_copy_of_a_folder_made_while_its_pipeline_runs_is_exact_or_refused(
    spark: SparkSession, folder: Path, tmp_path: Path
) -> None:
    with resumed(spark, folder) as running:
        feeding = threading.Thread(target=fed, args=(running, 40))
        feeding.start()
        copies = []
        for number in range(4):
            copies.append(tmp_path / f"copy-{number}")
            _copy(folder, copies[-1])
        feeding.join()
        running.drain()
        assert answers(running) == right(40)
    for copy in copies:
        try:
            with resumed(spark, copy) as running:
                tables = max(running.feed("rows").published, 5)
                fed(running, tables)
                running.drain(90.0)
                found = answers(running)
        except SluicegateError as problem:
            in_one_line(problem)
        else:
            assert found == right(tables)


def _copy(folder: Path, target: Path) -> None:
    """As ``cp -r`` does: what is gone by now is left out."""
    with contextlib.suppress(FileNotFoundError, shutil.Error):
        shutil.copytree(folder, target)


@pytest.mark.parametrize("point", ["written", "published"])
def test_a_batch_that_fails_at_a_point_where_a_crash_would_hurt_runs_again_exactly(
    spark: SparkSession, folder: Path, tmp_path: Path, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = tmp_path / "points"
    points.mkdir()
    monkeypatch.setenv(VARIABLE, str(points))
    with resumed(spark, folder) as running:
        for upto in range(4, 9):
            (points / point).write_text(FAILS)
            fed(running, upto)
            running.drain()
            assert not (points / point).exists()
        assert answers(running) == right(8)
        assert all("No space left on device" in line for line in running.restarts)
        assert len(running.restarts) >= 3
    assert verify(folder).sound


def test_a_plan_that_cannot_be_read_leaves_the_last_one_in_force(spark: SparkSession, folder: Path) -> None:
    with resumed(spark, folder) as running:
        plan = running.layout.plan
        plan.unlink()
        plan.mkdir()
        fed(running, 5)
        running.drain()
        plan.rmdir()
        assert answers(running) == right(5)
        assert running.restarts == []


def test_data_moved_to_another_disk_by_a_link_is_one_line_and_goes_on_once_it_is_back(
    spark: SparkSession, folder: Path
) -> None:
    data, elsewhere = Layout(folder).edge("fives") / "data", Path("/dev/shm") / f"sluicegate-{folder.parent.name}"
    if not elsewhere.parent.is_dir() or elsewhere.parent.stat().st_dev == folder.stat().st_dev:
        pytest.skip("needs a second file system")
    try:
        shutil.move(data, elsewhere)
        data.symlink_to(elsewhere)
        with resumed(spark, folder) as running:
            fed(running, 4)
            assert wait_until(lambda: bool(read_failures(running.layout.failures)), 90.0, 0.1)
            with pytest.raises(SluicegateError) as told:
                running.drain(1.0)
            assert "Invalid cross-device link" in in_one_line(told.value)
        data.unlink()
        shutil.move(elsewhere, data)
        with resumed(spark, folder) as running:
            running.drain()
            assert answers(running) == right(4)
    finally:
        shutil.rmtree(elsewhere, ignore_errors=True)


def test_what_spark_itself_raises_at_the_end_of_a_run_is_one_line(spark: SparkSession) -> None:
    java = spark.sparkContext._jvm
    assert java is not None
    try:
        java.java.lang.Integer.parseInt("x")
    except Exception as problem:
        told = ended_by(problem, spark)
    assert isinstance(told, EnvironmentLacks)
    assert str(told).startswith("Spark failed (")
    assert 'For input string: "x"' in str(told)
    in_one_line(told)
    assert ended_by(KeyError("a fault of ours"), spark) is None
