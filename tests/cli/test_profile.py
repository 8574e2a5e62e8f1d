"""`sluicegate profile` on real Spark: stopped in the middle it keeps its trials and goes on, nothing stays running."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.ctrl_c import below, hears_ctrl_c

from sluicegate.cli.app import run
from sluicegate.config.capacity_file import read_capacity_file
from sluicegate.config.profile_file import read_profile_file

SLUICEGATE = str(Path(sys.executable).parent / "sluicegate")
APP = """
import time
import pyarrow as pa
from sluicegate import Pipeline
from sluicegate.lab.running.app import App

def waits(batches):
    for batch in batches:
        time.sleep(batch.num_rows * 0.01)
        yield batch

def fails(batches):
    for batch in batches:
        if batch.column("id")[0].as_py() >= 0:
            raise ValueError("no such customer")
        yield batch

def crawls(batches):
    for batch in batches:
        time.sleep(batch.num_rows * 3.0)
        yield batch

def hangs(batches):
    for batch in batches:
        while True:
            time.sleep(1.0)
        yield batch

def hoards(batches):
    kept = []
    for batch in batches:
        for _ in range(200):
            kept.append(bytearray(b"x") * (20 * 2**20))
            time.sleep(0.02)
        yield batch

def make():
    made = Pipeline("mine")
    numbers = made.source("numbers", "id long")
    for number, work in enumerate((crawls, hangs, hoards)):
        does = lambda rows, work=work: rows.mapInArrow(work, "id long")
        one = made.operator(work.__name__, does, numbers, fuse=False)
        made.sink(f"out-{number}", one)
    before = made.operator("before", lambda rows: rows, numbers, fuse=False)
    called = made.operator("call", lambda rows: rows.mapInArrow(waits, "id long"), before, fuse=False)
    made.sink("out", made.operator("bad", lambda rows: rows.mapInArrow(fails, "id long"), called, fuse=False))
    return made

app = App("mine", make, lambda source, first, count: pa.table({"id": list(range(first, first + count))}))
"""
PATIENCE_S = 600.0


def profiling(folder: Path, *words: str, app: str = "app.py") -> subprocess.Popen[str]:
    (folder / "app.py").write_text(APP)
    return subprocess.Popen(
        [SLUICEGATE, "profile", app, *words, "--out", "out", "--slot-tasks", "2"],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder), "NO_COLOR": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hears_ctrl_c,
    )


@pytest.mark.slow
@pytest.mark.long
def test_an_operator_in_the_middle_is_profiled_stopped_and_gone_on_with(tmp_path: Path) -> None:
    trials = tmp_path / "out" / "call.trials.jsonl"
    with profiling(tmp_path, "call", "--minutes", "10") as first:
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until and first.poll() is None:
            if trials.exists() and len(trials.read_text().splitlines()) > 2:
                break
            time.sleep(0.5)
        first.send_signal(signal.SIGINT)
        _, said = first.communicate(timeout=PATIENCE_S)
    assert "what was measured is kept" in said
    assert first.returncode in (130, 1), said  # 1: none of the trials so far was stable
    kept = len(trials.read_text().splitlines()) - 1
    assert kept >= 2
    assert below(tmp_path) == []
    with profiling(tmp_path, "call", "--minutes", "1.2", "--json", "--html", "page.html") as second:
        out, said = second.communicate(timeout=PATIENCE_S)
    assert second.returncode == 0, said
    told = json.loads(out)
    assert told["operator"] == "call"
    assert told["trials"] > kept
    assert told["points"][0]["threads"] == 1
    # a row waits 10 ms: one task does no more than 100 rows/s, whatever else it costs
    assert 1 < told["points"][0]["rate_per_s"] < 100
    assert told["batch"]["service_per_s"] < 110
    assert read_profile_file(tmp_path / "out" / "call.toml").profile.task == "call"
    assert "<svg" in (tmp_path / "page.html").read_text()
    assert below(tmp_path) == []


@pytest.mark.slow
@pytest.mark.long
def test_an_operator_that_throws_is_one_line_and_leaves_nothing_running(tmp_path: Path) -> None:
    with profiling(tmp_path, "bad", "--minutes", "1") as process:
        out, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode not in (0, 130)
    assert out == ""
    last = said.strip().splitlines()[-1]
    assert "bad" in last
    assert "no such customer" in last
    assert said.count("no such customer") == 1
    assert "Traceback" not in said
    assert below(tmp_path) == []


@pytest.mark.slow
@pytest.mark.long
def test_what_nodes_sustain_is_measured_stopped_and_kept(tmp_path: Path) -> None:
    log = tmp_path / "out" / "chain.mst.jsonl"
    words = ("--mst", "--minutes", "15", "--delta", "0.6")
    with profiling(tmp_path, *words, "--nodes", "1,2", app="chain") as first:
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until and first.poll() is None and not log.exists():
            time.sleep(0.2)
        first.send_signal(signal.SIGINT)
        out, said = first.communicate(timeout=PATIENCE_S)
    assert first.returncode == 130, said
    assert out == ""
    assert "sizes that were measured are kept" in said
    assert "what was measured is in out/chain.mst.toml" in said
    assert "log4j" not in said
    assert below(tmp_path) == []
    with profiling(tmp_path, *words, "--nodes", "1", "--json", "--html", "page.html", app="chain") as second:
        out, said = second.communicate(timeout=PATIENCE_S)
    assert second.returncode == 0, said
    told = json.loads(out)
    assert [point["nodes"] for point in told["mst"]] == [1]
    assert read_capacity_file(tmp_path / "out" / "chain.mst.toml").slots_per_node == 2
    assert "<svg" in (tmp_path / "page.html").read_text()


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize(
    ("operator", "told"),
    [
        ("crawls", "is unstable with 1 task even at 0.5 rows/s"),
        ("hangs", "a batch has not ended within 30 s"),
        ("hoards", "and the slot has 1536 MB: give more --slot-memory"),
    ],
)
def test_an_operator_that_cannot_be_profiled_is_one_line_and_leaves_nothing_running(
    operator: str, told: str, tmp_path: Path
) -> None:
    with profiling(tmp_path, operator, "--minutes", "5" if operator == "crawls" else "0.5") as process:
        out, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1, said
    assert out == ""
    last = said.strip().splitlines()[-1]
    assert f"operator '{operator}'" in last
    assert told in last
    assert "Traceback" not in said
    assert below(tmp_path) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("chain",), "name the operator to profile: chain has"),
        (("chain", "nothing"), "application 'chain' has no operator 'nothing'"),
        (("chain", "--minutes", "0"), "--minutes is 0"),
        (("chain", "parse", "--mst"), "--mst measures the whole application: leave 'parse' out"),
        (("chain", "--mst", "--nodes", "one"), "--nodes is 'one': give whole numbers"),
        (("chain", "--mst", "--nodes", "0"), "--nodes has 0: give sizes from 1"),
        (("chain", "--mst", "--delta", "2"), "--delta 2"),
        (("nothing", "a"), "no application 'nothing'"),
    ],
)
def test_what_cannot_be_profiled_is_one_line_before_spark_starts(
    words: tuple[str, ...], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["profile", *words, "--out", str(tmp_path / "out")]) == 2
    assert said in capsys.readouterr().err


def test_a_pipeline_that_makes_no_rows_says_what_to_add(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "app.py").write_text(APP.replace("app = App(", "pipeline = make() if True else App("))
    assert run(["profile", str(tmp_path / "app.py"), "call", "--out", str(tmp_path / "out")]) == 2
    assert "makes no rows of its own" in capsys.readouterr().err
