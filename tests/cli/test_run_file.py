"""`sluicegate run app.py`: a file of the user's runs until it is stopped, and what it wrote stays."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, cast

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame
from tests.ctrl_c import sluicegate_in, wait_in

from sluicegate.cli.app import run
from sluicegate.cli.checked_options import the_processors
from sluicegate.errors import BadInput
from sluicegate.lab.running.app import App as Application
from sluicegate.runlog.batch_log import BatchRecord, Tail
from sluicegate.runlog.layout import Layout
from sluicegate.spark.edges.folder import FolderEdge
from sluicegate.spark.pipeline.declaration import Pipeline
from sluicegate.spark.pipeline.elements import Stream

APP = """
import pyarrow as pa
from sluicegate import Pipeline
from sluicegate.lab.running.app import App

def make():
    made = Pipeline("my_rows")
    made.sink("out", made.operator("same", lambda rows: rows, made.source("numbers", "id long")))
    return made

def rows(source, first, count):
    return pa.table({"id": list(range(first, first + count))})

app = App("my_rows", make, rows, calm_per_s=50.0, slo="mean=60s")
"""


def started(folder: Path, *arguments: str) -> AbstractContextManager[subprocess.Popen[str]]:
    return sluicegate_in(folder, "run", "app.py", *arguments)


def ids_in(folder: Path) -> list[int]:
    edge = FolderEdge(folder / "edges" / "same")
    paths = [edge.folder / file.path for number in edge.numbers() for file in edge.need(number).files]
    return sorted(int(row["id"]) for path in paths for row in pq.read_table(path).to_pylist())


@pytest.mark.slow
def test_a_file_runs_until_it_is_stopped_keeps_every_row_and_goes_on_in_its_folder(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    kept = tmp_path / "sluicegate-my_rows"
    begins = ("--processors", "same=2", "--cycle", "5s")
    with started(tmp_path, "--master", "local[3]", *begins) as process:
        wait_in(process, (kept / "ticks.jsonl").exists)
        with started(tmp_path) as second:
            _, refused = second.communicate(timeout=120)
            assert second.returncode == 2
            assert refused == (
                f"sluicegate: a pipeline runs in {kept} already (process {process.pid}): stop it, or choose another "
                "folder\n"
            )  # not a word of Spark: it was not started
        wait_in(process, lambda: len(ids_in(kept)) > 400)  # it warms up with 320
        os.kill(process.pid, signal.SIGTERM)
        out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert f"my_rows in {kept}: rows and checkpoints stay there" in err
    assert "it runs until it is stopped" in err
    assert f"kept in {kept}; go on with: sluicegate run app.py --master 'local[3]' {' '.join(begins)}\n" in err
    layout = Layout(kept)
    assert BatchRecord.from_json(next(Tail(layout.batches("same")).lines())).processors == 2
    assert json.loads(layout.control.read_text())["cycle_s"] == 5.0
    first = ids_in(kept)
    assert first == list(range(len(first)))
    assert len(first) > 400
    with started(tmp_path, "--master", "local[3]", "--seconds", "3", "--json") as process:
        out, err = process.communicate(timeout=300)
    assert (process.returncode, err) == (0, "")
    assert json.loads(out)["interrupted"] is False
    both = ids_in(kept)
    assert both == list(range(len(both)))
    assert len(both) > len(first)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--budget", "0"], "--budget"),
        (["--budget", "-2"], "--budget"),
        (["--load", "trace.csv"], "give --seconds too"),
        (["--slo", "mean3s"], "write NAME=VALUE"),
        (["--policy", "magic"], "unknown policy"),
        (["--master", "lokal"], "master is 'lokal'"),
        (["--executors", "1:2"], "has no executors"),
        (["--seconds", "0"], "above 0"),
        (["--seconds", "soon"], "not a duration"),
        (["--rate", "-1"], "above 0"),
        (["--folder", "app.py"], "is a file"),
        (["--conf", "memory"], "KEY=VALUE"),
        (["--processors", "sam=2"], "processors of 'sam': no such operator; there is same"),
        (["--processors", "same=1.5"], "--processors of same is 1.5: give a whole number"),
        (["--processors", "same=0"], "--processors of same is 0: give a whole number"),
        (["--processors", "same"], "write NAME=NUMBER"),
        (["--cycle", "0s"], "--cycle is 0s: give a time above 0"),
        (["--cycle", "often"], "not a duration"),
        (["--conf", "memory=1g"], "spark.executor.memory"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_spark_starts(
    arguments: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLUICEGATE_HOME", str(tmp_path / "home"))
    (tmp_path / "app.py").write_text(APP)
    assert run(["run", "app.py", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    last = err.splitlines()[-1]
    assert last.startswith("sluicegate: ")
    assert said in last
    assert not (tmp_path / "sluicegate-my_rows" / "pipeline.json").exists()


def same(*rows: DataFrame) -> DataFrame:
    return rows[0]


def begun() -> tuple[Pipeline, Stream]:
    pipeline = Pipeline("p")
    return pipeline, pipeline.source("s", "id long")


def test_a_pipeline_that_cannot_run_is_refused_before_spark_starts() -> None:
    pipeline, lines = begun()
    pipeline.operator("a", same, lines)
    with pytest.raises(BadInput, match="nothing reads 'a'"):
        the_processors(Application("p", lambda: pipeline), None, fuse=True)


@pytest.mark.parametrize("build", [lambda: cast(Any, Pipeline("p")).operatr("a"), lambda: None])
def test_an_application_that_does_not_build_is_refused_in_one_line(build: Any) -> None:
    with pytest.raises(BadInput, match=r"cannot be built: AttributeError|its build gave NoneType"):
        the_processors(Application("p", build), None, fuse=True)
