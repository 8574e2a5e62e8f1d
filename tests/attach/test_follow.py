"""An unmodified application, attached by the words of `sluicegate conf`: executors follow its load, rows stay exact."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.dataset as ds
import pytest
from tests.attach.attached import batches, until

from sluicegate.cli.app import run as sluicegate
from sluicegate.runlog.run_record import RunRecord, read_record
from sluicegate.runlog.runs import known_runs
from sluicegate.spark.cluster.java import QUICK_JAVA
from sluicegate.spark.cluster.secret import page_password, properties_file
from sluicegate.spark.cluster.standalone import Cluster

pytestmark = pytest.mark.slow

SLUICEGATE = (sys.executable, "-c", "from sluicegate.cli import main; main()")
FEW_PER_S, MANY_PER_S = 30, 300
"""A slot does 200 rows a second, on a busy machine half of that: one is enough, then it is not."""
SIZES = {
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.cores.max": "3",
    "spark.sql.shuffle.partitions": "6",
    "spark.driver.extraJavaOptions": QUICK_JAVA,
    "spark.executor.extraJavaOptions": QUICK_JAVA,
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sluicegate.interval_s": "1",
}


@dataclass
class Feed:
    """Writes files of rows at a rate that may change, and knows what was written."""

    folder: Path
    per_s: int = FEW_PER_S
    counts: Counter[str] = field(default_factory=Counter)
    sums: Counter[str] = field(default_factory=Counter)
    ended: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        value = 0
        for file in range(100_000):
            lines = []
            for _ in range(max(self.per_s // 2, 1)):
                key = f"k{value % 48}"
                self.counts[key] += 1
                self.sums[key] += value
                lines.append(json.dumps({"k": key, "v": value}))
                value += 1
            draft = self.folder.parent / f"draft-{file}"
            draft.write_text("\n".join(lines) + "\n")
            draft.rename(self.folder / f"{file:06d}.json")
            if self.ended.wait(0.5):
                return


@dataclass
class Story:
    """What happened."""

    folder: Path
    feed: Feed
    grown: bool
    shrunk: bool
    code: int
    log: str

    @property
    def record(self) -> RunRecord:
        return read_record(self.folder)

    def rows(self) -> dict[str, tuple[int, int]]:
        """The last state of every key that the sink has."""
        found: dict[str, tuple[int, int]] = {}
        for row in ds.dataset(self.folder.parent / "out", format="parquet").to_table().to_pylist():
            found[row["k"]] = max(found.get(row["k"], (0, 0)), (row["n"], row["total"]))
        return found


def executors(folder: Path) -> int:
    try:
        return int(json.loads((folder / "nodes.json").read_text())["executors"])
    except (OSError, ValueError):
        return 0


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    base = tmp_path_factory.mktemp("follow")
    cluster, folder = Cluster(base / "cluster", patience_s=300.0), base / "record"
    feed = Feed(base / "in")
    feed.folder.mkdir()
    try:
        url = cluster.up(workers=3, memory="512m").url
        words = subprocess.run(
            [*SLUICEGATE, "conf", "--slo", "p95=20s", "--executors", "1:3", "--folder", str(folder)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        sizes = [word for key, value in SIZES.items() for word in ("--conf", f"{key}={value}")]
        app = [str(Path(__file__).with_name("plain_app.py")), str(feed.folder), str(base / "out")]
        ends = [str(base / "checkpoint"), str(base / "stop")]
        let_in = ["--properties-file", str(properties_file(cluster.folder))]
        submit = [str(Path(sys.executable).with_name("spark-submit")), "--master", url, *let_in]
        environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
        feeding = threading.Thread(target=feed.run, daemon=True)
        with (base / "submit.log").open("w") as log:
            command = [*submit, *shlex.split(words), *sizes, *app, *ends]
            process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
            try:
                feeding.start()
                # a standalone master first gives all it may
                calm = until(lambda: len(batches(folder, "counts")) >= 4 and executors(folder) == 1, 240)
                feed.per_s = MANY_PER_S
                grown = calm and until(lambda: executors(folder) >= 2, 180)
                # the load falls once a batch has run in the tasks that it needs
                grown = grown and until(lambda: max(b["tasks"] for b in batches(folder, "counts")) >= 2, 120)
                feed.per_s = FEW_PER_S
                shrunk = grown and until(lambda: executors(folder) == 1, 240)
                feed.ended.set()
                feeding.join()
                (base / "stop").touch()
                code = process.wait(240)
            finally:
                feed.ended.set()
                process.kill()
        yield Story(folder, feed, grown, shrunk, code, (base / "submit.log").read_text())
    finally:
        cluster.down()


def test_executors_come_with_the_load_and_go_with_it(story: Story) -> None:
    assert (story.grown, story.shrunk) == (True, True), [line["what"] for line in story.record.fleet]


def test_every_row_counts_once_while_executors_come_and_go(story: Story) -> None:
    assert story.code == 0, story.log[-3000:]
    fed = {key: (story.feed.counts[key], story.feed.sums[key]) for key in story.feed.counts}
    assert story.rows() == fed


def test_tasks_follow_with_reasons_in_the_log(story: Story) -> None:
    moves = [rescale for decision in story.record.decisions for rescale in decision["rescales"]]
    assert {"counts"} == {move["operator"] for move in moves}
    assert min(move["want"] for move in moves) == 1
    assert max(move["want"] for move in moves) >= 2
    assert all(decision["reasons"] for decision in story.record.decisions)


def test_no_secret_of_the_cluster_is_in_the_record(story: Story) -> None:
    secrets = (page_password(story.folder.parent / "cluster"), "param.password")
    found = [path for path in story.folder.rglob("*") if path.is_file()]
    assert len(found) > 5
    assert [path.name for path in found for secret in secrets if secret.encode() in path.read_bytes()] == []


def test_other_commands_find_the_application_and_show_it(story: Story, capsys: pytest.CaptureFixture[str]) -> None:
    assert any(run.folder == str(story.folder) for run in known_runs())
    folder, page = str(story.folder), story.folder / "page.html"
    for command in (["status", folder], ["explain", "--folder", folder], ["top", folder]):
        assert sluicegate(command) == 0, command
        assert "counts" in capsys.readouterr().out, command
    assert sluicegate(["report", folder, "--html", str(page)]) == 0
    assert "counts" in page.read_text()
