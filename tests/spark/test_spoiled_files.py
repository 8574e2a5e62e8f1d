"""Files of a pipeline deleted, emptied, torn, overwritten, one bit flipped: the answer is exact, or one line says why.

Rows never vanish while ``drain`` reports success.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.spark.edges.checking import check_data
from tests.spark.small_pipelines import ids_of, numbers

from sluicegate.errors import SluicegateError
from sluicegate.runlog.layout import Layout
from sluicegate.spark.edges.feed import Feed
from sluicegate.spark.edges.folder import FolderEdge
from sluicegate.spark.edges.kept import read_stream
from sluicegate.spark.edges.spoiled import EdgeSpoiled
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.failures import spoiled
from sluicegate.spark.pipeline.runtime import Running, start

pytestmark = pytest.mark.slow

FED, WAITING, ROWS = 2, 4, 100
"""Tables that both operators have taken, tables that wait on the source, and rows of each."""
ALL = list(range((FED + WAITING) * ROWS))


def numbered(frame: DataFrame) -> DataFrame:
    return frame.selectExpr("id")


def pipeline() -> Pipeline:
    made = Pipeline("spoiled")
    first = made.operator("first", numbered, made.source("rows", "id long"))
    made.sink("out", made.operator("second", numbered, first))
    return made


def resumed(spark: SparkSession, folder: Path) -> Running:
    return start(pipeline(), spark, folder, {"first": 2}, fuse=False)


@pytest.fixture(scope="module")
def story(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a pipeline that was stopped, and whose source was fed since."""
    folder = tmp_path_factory.mktemp("story") / "run"
    with resumed(spark, folder) as running:
        for number in range(FED):
            running.feed("rows").append(numbers(ROWS, number * ROWS))
            running.drain()
    feed = Feed(Layout(folder).edge("rows"))
    for number in range(FED, FED + WAITING):
        feed.append(numbers(ROWS, number * ROWS))
    return folder


@pytest.fixture
def folder(story: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(story, tmp_path / "run"))


def delete(path: Path) -> None:
    path.unlink()


def empty(path: Path) -> None:
    path.write_bytes(b"")


def tear(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def overwrite(path: Path) -> None:
    path.write_bytes(bytes(range(128, 256)) * (path.stat().st_size // 128 + 1))


@dataclass(frozen=True, slots=True)
class Flip:
    """One bit of the byte at ``share`` of a file."""

    share: float

    def __call__(self, path: Path) -> None:
        read = bytearray(path.read_bytes())
        read[round(self.share * (len(read) - 1))] ^= 4
        path.write_bytes(bytes(read))

    @property
    def __name__(self) -> str:
        return f"flip-{self.share:g}"


def flip_a_dash(path: Path) -> None:
    """One bit of the query's number: it is no number any more."""
    path.write_bytes(path.read_bytes().replace(b"-", b"=", 1))


Kind = Callable[[Path], None]
FLIPS: list[Kind] = [Flip(share) for share in (0.0, 0.2, 0.5, 0.8, 0.98, 1.0)]
TORN: list[Kind] = [empty, tear, overwrite]
KINDS: list[Kind] = [delete, *TORN, *FLIPS]
NEWEST = FED + WAITING - 1


def manifest(stream: str, number: int) -> str:
    return f"edges/{stream}/manifests/{number:012d}.json"


REFUSED: dict[str, tuple[str, list[Kind]]] = {
    manifest("rows", FED): ("edge 'rows': manifest 2 ", KINDS),
    manifest("rows", FED + 1): ("edge 'rows': manifest 3 ", [delete, Flip(0.5)]),
    manifest("rows", NEWEST): ("edge 'rows': manifest 5 ", KINDS),
    "edges/first/manifests/*1.json": ("edge 'first': manifest 1 ", [delete, tear, Flip(0.5)]),
    "edges/second/manifests/*0.json": ("edge 'second': manifest 0 ", [delete, overwrite, Flip(0.5)]),
    "edges/second/manifests/*1.json": ("edge 'second': manifest 1 ", [delete, empty, Flip(0.2)]),
    "edges/rows/edge.json": ("edge 'rows': ", [*TORN, *FLIPS]),
    "pipeline.json": ("", [*TORN, *FLIPS]),
    "operators/first/checkpoint/offsets/[0-9]*": ("operator 'first', checkpoint: ", [delete, *TORN, Flip(1.0)]),
    "operators/second/checkpoint/commits/[0-9]*": ("operator 'second', checkpoint: ", TORN),
    "operators/second/checkpoint/metadata": ("operator 'second', checkpoint: ", [delete, *TORN, flip_a_dash]),
}


@pytest.mark.parametrize("target", REFUSED)
def test_a_start_with_a_spoiled_file_is_refused_and_goes_on_exactly_once_it_is_restored(
    spark: SparkSession, folder: Path, target: str
) -> None:
    begins, kinds = REFUSED[target]
    path = max(folder.glob(target))
    backup = path.read_bytes()
    before = set(folder.rglob("*.parquet"))
    for kind in kinds:
        kind(path)
        told = refusal(spark, folder)
        assert told.startswith(begins), (kind, told)
        assert path.name in told, (kind, told)
        assert "restore" in told, (kind, told)
        assert "mend" not in told
        path.write_bytes(backup)
    assert set(folder.rglob("*.parquet")) == before, "what could be restored is not removed"
    if target in (manifest("rows", FED), "edges/second/manifests/*0.json"):
        assert drained(spark, folder) == ALL


def refusal(spark: SparkSession, folder: Path) -> str:
    with pytest.raises(EdgeSpoiled) as refused, resumed(spark, folder):
        pass
    assert "\n" not in str(refused.value)
    return str(refused.value)


def drained(spark: SparkSession, folder: Path) -> list[int]:
    with resumed(spark, folder) as running:
        running.drain()
        return ids_of(running.read("second"))


def test_files_that_can_be_done_without_change_nothing(spark: SparkSession, folder: Path) -> None:
    delete(max(folder.glob("operators/second/checkpoint/commits/[0-9]*")))
    delete(folder / "edges/first/edge.json")
    delete(folder / "pipeline.json")
    delete(folder / "edges/rows/newest")
    overwrite(folder / "edges/rows/oldest")
    for kind, mark in zip(TORN, ("first/newest", "first/oldest", "second/newest"), strict=True):
        kind(folder / "edges" / mark)
    assert drained(spark, folder) == ALL


@pytest.mark.parametrize("kind", [delete, Flip(0.1), Flip(0.9)], ids=lambda kind: str(kind.__name__))
def test_a_spoiled_data_file_stops_its_reader_with_one_line(spark: SparkSession, folder: Path, kind: Kind) -> None:
    """Two tasks share the files here, so that the driver reads footers too."""
    edge = FolderEdge(folder / "edges" / "rows")
    file = edge.need(FED + 1).files[0]
    kind(edge.folder / file.path)
    with resumed(spark, folder) as running, pytest.raises(EdgeSpoiled) as stopped:
        running.drain()
    assert_line(str(stopped.value), f"edge 'rows', manifest 3: {file.path} ")
    assert [line for line in running.restarts if " once in " not in line] == [], "no try can help"


def test_a_kept_row_that_was_changed_is_never_read_as_if_it_were_right(spark: SparkSession, folder: Path) -> None:
    edge = FolderEdge(folder / "edges" / "rows")
    file = edge.need(FED).files[0]
    path = edge.folder / file.path
    backup, right = path.read_bytes(), ids_of(read_stream(spark, folder, "rows"))
    assert right == ALL[FED * ROWS - ROWS :]
    for kind in KINDS:
        kind(path)
        with pytest.raises(EdgeSpoiled) as alone:
            check_data(edge)
        assert_line(str(alone.value), f"edge 'rows', manifest 2: {file.path} ")
        with pytest.raises(Exception, match=r"EdgeSpoiled|edge 'rows', manifest 2") as by_spark:
            ids_of(read_stream(spark, folder, "rows"))
        assert str(spoiled(by_spark.value) or by_spark.value) == str(alone.value), "the same words"
        path.write_bytes(backup)
    assert ids_of(read_stream(spark, folder, "rows")) == right


@pytest.fixture
def lenient(spark: SparkSession) -> Iterator[None]:
    """A session that passes over files that are missing or cannot be read, as some have it for their data lake."""
    settings = [f"spark.sql.files.ignore{what}Files" for what in ("Corrupt", "Missing")]
    for one in settings:
        spark.conf.set(one, "true")
    yield
    for one in settings:
        spark.conf.unset(one)


@pytest.mark.usefixtures("lenient")
def test_a_session_that_passes_over_bad_files_does_not_pass_over_kept_rows(spark: SparkSession, folder: Path) -> None:
    edge = FolderEdge(folder / "edges" / "rows")
    file = edge.need(FED + 1).files[0]
    Flip(0.5)(edge.folder / file.path)
    with pytest.raises(Exception, match="EdgeSpoiled"):
        ids_of(read_stream(spark, folder, "rows"))


@pytest.mark.parametrize("lost", [1, 2], ids=["in the middle", "the newest"])
def test_a_manifest_lost_while_the_pipeline_runs_stops_it_and_drain_does_not_report_success(
    spark: SparkSession, folder: Path, lost: int
) -> None:
    layout = Layout(folder)
    with resumed(spark, folder) as running:
        running.drain()
        layout.hold.write_text("held\n")
        feed = running.feed("rows")
        for number in range(3):
            feed.append(numbers(ROWS, number * ROWS))
        gone = FolderEdge(layout.edge("rows")).manifest_path(NEWEST + 1 + lost)
        gone.unlink()
        layout.hold.unlink()
        with pytest.raises(EdgeSpoiled) as stopped:
            running.drain()
    assert_line(str(stopped.value), f"edge 'rows': manifest {NEWEST + 1 + lost} is missing")
    with pytest.raises(SluicegateError, match=f"manifest {NEWEST + 1 + lost} is missing"):
        Feed(layout.edge("rows")).append(numbers(1))


def assert_line(told: str, begins: str) -> None:
    assert told.startswith(begins)
    assert told.endswith("or start in a new folder")
    assert "restore" in told
    assert "\n" not in told
