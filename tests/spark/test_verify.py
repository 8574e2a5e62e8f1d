"""What ``sluicegate verify`` says of a folder whose files were spoiled, and what ``--repair`` makes of it."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.spark.small_pipelines import numbers

from sluicegate.cli.app import run
from sluicegate.errors import BadInput
from sluicegate.runlog.layout import Layout
from sluicegate.spark.edges.offsets import next_of, offset_of
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.graph import read_graph
from sluicegate.spark.pipeline.runtime import Running, start
from sluicegate.spark.pipeline.verify import verify

pytestmark = pytest.mark.slow
ROWS = 60


def by_seven(frame: DataFrame) -> DataFrame:
    return frame.selectExpr("id % 7 as key").groupBy("key").count()


def same(frame: DataFrame) -> DataFrame:
    return frame.selectExpr("id")


def resumed(spark: SparkSession, folder: Path) -> Running:
    made = Pipeline("verified")
    passed = made.operator("pass", same, made.source("rows", "id long"), fuse=False)
    made.sink("counts", made.operator("count", by_seven, passed, stateful=True, key_groups=2))
    return start(made, spark, folder)


@pytest.fixture(scope="module")
def story(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("verified") / "run"
    with resumed(spark, folder) as running:
        for number in range(2):
            running.feed("rows").append(numbers(ROWS, number * ROWS))
            running.drain()
        with pytest.raises(BadInput, match="runs in"):
            verify(folder)
    return folder


@pytest.fixture
def folder(story: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(story, tmp_path / "run"))


def test_a_folder_that_was_stopped_is_sound(story: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", str(story), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["sound"]
    assert told["faults"] == []
    assert (told["edges"], told["operators"]) == (3, 2)
    assert told["files"] >= 2


SPOILED = {
    "edges/*/manifests/*.json": ("delete", "tear", "flip"),
    "edges/count/data/*/*.parquet": ("delete", "tear", "flip", "empty"),
    "edges/*/edge.json": ("empty", "flip"),
    "operators/*/checkpoint/offsets/*": ("empty", "garbage"),
    "operators/*/checkpoint/commits/*": ("empty", "garbage"),
    "operators/count/checkpoint/state/0/[0-9]*/*": ("delete", "empty"),
    "pipeline.json": ("flip", "garbage", "delete"),
}


def _spoil(path: Path, how: str) -> None:
    data = bytearray(path.read_bytes())
    if how == "delete":
        path.unlink()
    elif how == "flip":
        data[len(data) // 2] ^= 4
        path.write_bytes(bytes(data))
    else:
        path.write_bytes({"empty": b"", "garbage": b"\xff\x00 no json", "tear": bytes(data[: len(data) // 2])}[how])


@pytest.mark.parametrize(("pattern", "how"), [(p, how) for p, hows in SPOILED.items() for how in hows])
def test_every_spoiled_file_is_named_in_one_line(folder: Path, pattern: str, how: str) -> None:
    there = sorted(path for path in folder.glob(pattern) if path.is_file() and not path.name.startswith("."))
    _spoil(there[-1], how)
    found = verify(folder)
    assert not found.sound
    assert all("\n" not in fault for fault in found.faults)
    assert any(there[-1].name in fault or there[-1].parent.name in fault for fault in found.faults), found.faults


def _folder_in_place(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _loop(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


def _longer(path: Path) -> None:
    path.write_bytes(path.read_bytes() + bytes(3))


def _last_line_twice(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines, lines[-1] if lines[-1].endswith(b"\n") else b"\n" + lines[-1]]))


def _swapped(path: Path) -> None:
    """With the file of another edge that is as long, so that only what is in them tells them apart."""
    there = path.parents[4] / "edges"
    other = next(one for one in sorted(there.glob("*/data/*/*.parquet")) if one.parents[2] != path.parents[2])
    size = path.stat().st_size
    path.write_bytes((other.read_bytes() * 9)[:size])


ODD: list[tuple[str, Callable[[Path], None]]] = [
    *(
        (pattern, how)
        for pattern in ("edges/*/manifests/*.json", "edges/*/edge.json")
        for how in (_folder_in_place, _loop)
    ),
    *(("edges/count/data/*/*.parquet", how) for how in (_folder_in_place, _loop, _longer, _swapped)),
    *(("operators/*/checkpoint/offsets/*", how) for how in (_folder_in_place, _loop, _longer, _last_line_twice)),
    *(("operators/*/checkpoint/commits/*", how) for how in (_folder_in_place, _loop, _longer)),
    *(("operators/*/checkpoint/metadata", how) for how in (_folder_in_place, _loop, _longer)),
    *(("edges/*/manifests/*.json", how) for how in (_longer, _last_line_twice)),
    *(("pipeline.json", how) for how in (_folder_in_place, _loop)),
]


@pytest.mark.parametrize(("pattern", "how"), ODD)
def test_a_file_in_an_odd_state_is_named_too_and_a_repair_does_not_stumble_over_it(
    folder: Path, pattern: str, how: Callable[[Path], None]
) -> None:
    there = sorted(path for path in folder.glob(pattern) if path.is_file() and not path.name.startswith("."))
    how(there[-1])
    for repair in (False, True):
        found = verify(folder, repair)
        assert not found.sound
        assert found.repaired == ()
        assert all("\n" not in fault for fault in found.faults)
        assert any(there[-1].name in fault for fault in found.faults), found.faults


def test_a_checkpoint_of_an_old_backup_does_not_fit_its_output(folder: Path) -> None:
    """The next start would refuse it: nothing in either of the two is wrong."""
    checkpoint = folder / "operators" / "count" / "checkpoint"
    for log in ("offsets", "commits"):
        for path in sorted((checkpoint / log).iterdir(), key=lambda path: path.name):
            if path.name not in {"0", ".0.crc"}:
                path.unlink()
    found = verify(folder, repair=True)
    assert any("its checkpoint is at batch 0, its output at" in fault for fault in found.faults), found.faults


def test_a_spoiled_commit_record_counts_as_long_as_its_batch_may_run_again(folder: Path) -> None:
    records = folder / "operators" / "pass" / "commits"
    records.mkdir()
    (records / "0.json").write_text("{")
    assert verify(folder).sound
    (records / "99.json").write_text("{")
    assert f"operator 'pass': {records / '99.json'} is torn or overwritten: restore it" in verify(folder).faults[0]


def test_what_is_repaired_resumes_exactly(spark: SparkSession, folder: Path) -> None:
    (folder / "pipeline.json").write_text("{", encoding="utf-8")
    (folder / "operators" / "pass" / "drafts" / "7-left").mkdir(parents=True)
    offsets = folder / "operators" / "pass" / "checkpoint" / "offsets"
    last = max(int(path.name) for path in offsets.iterdir() if path.name.isdigit())
    assert verify(folder, repair=True).repaired
    with resumed(spark, folder) as running:
        running.drain()
    (offsets / str(last + 1)).write_bytes(b"v1\n{")
    found = verify(folder, repair=True)
    assert found.sound, found.faults
    assert len(found.repaired) == 1
    with resumed(spark, folder) as running:
        running.feed("rows").append(numbers(ROWS, 2 * ROWS))
        running.drain()
        latest: dict[int, int] = {}
        for row in running.read("count").collect():
            latest[row["key"]] = max(latest.get(row["key"], 0), row["count"])
    assert latest == Counter(number % 7 for number in range(3 * ROWS))


def test_a_torn_batch_is_not_planned_anew_if_a_sink_may_have_written_its_rows(folder: Path) -> None:
    """A sink that knows a batch by its number leaves out what a batch of the same number with more rows has besides."""
    layout = Layout(folder)
    graph = read_graph(layout)
    assert graph is not None
    nodes = tuple(replace(node, calls_write=node.name == "count") for node in graph.nodes)
    layout.description.write_text(replace(graph, nodes=nodes).to_json(), encoding="utf-8")
    offsets = layout.checkpoint("count") / "offsets"
    torn = offsets / str(max(int(path.name) for path in offsets.iterdir() if path.name.isdigit()) + 1)
    torn.write_bytes(b"v1\n{")
    found = verify(folder, repair=True)
    assert not found.sound
    assert found.repaired == ()
    assert f"{torn} is torn or overwritten: restore it from a backup" in found.faults[0]


def test_offsets_that_were_swapped_with_those_of_the_batch_before_are_not_taken_for_torn(folder: Path) -> None:
    """Without the newer file the older one would pass, with the newer one's rows as read."""
    offsets = Layout(folder).checkpoint("pass") / "offsets"
    last = offsets / str(max(int(path.name) for path in offsets.iterdir() if path.name.isdigit()))
    planned, text = offsets / str(int(last.name) + 1), last.read_text()
    *head, offset = text.splitlines()
    later = "\n".join([*head, offset_of("rows", next_of(offset) + 1, "pass")])
    planned.write_text(later)
    assert verify(folder).sound
    planned.write_text(text)
    last.write_text(later)
    found = verify(folder, repair=True)
    assert found.repaired == ()
    assert f"{planned} does not follow that of batch {last.name}: restore it" in found.faults[0]


def test_a_repair_deletes_nothing_that_a_link_leads_to(folder: Path, tmp_path: Path) -> None:
    """A folder that somebody else made may hold links to anything of whoever repairs it."""
    operator, elsewhere = folder / "operators" / "pass", tmp_path / "home"
    operator.rename(elsewhere)
    operator.symlink_to(elsewhere)
    (elsewhere / "drafts" / "mine").mkdir(parents=True)
    verify(folder, repair=True)
    assert (elsewhere / "drafts" / "mine").is_dir()
    offsets, mine = folder / "operators" / "count" / "checkpoint" / "offsets", tmp_path / "mine"
    offsets.rename(mine)
    offsets.symlink_to(mine)
    (mine / "99").touch()
    verify(folder, repair=True)
    assert (mine / "99").exists()


def test_what_is_lost_is_refused_and_not_papered_over(folder: Path) -> None:
    edge = folder / "edges" / "rows" / "manifests"
    max(edge.glob("*.json")).unlink()
    found = verify(folder, repair=True)
    assert not found.sound
    assert found.repaired == ()
    with pytest.raises(BadInput, match="no folder"):
        verify(folder / "none")
