"""A run whose Java process is killed: one line, whose fault, and what to do."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sluicegate.cli.app import run
from sluicegate.spark.cluster.waiting import wait_until

pytestmark = pytest.mark.slow


def java_of(pid: int) -> int | None:
    """The Java process that a process has started."""
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # another child, which has ended by now
            if "java" in Path(f"/proc/{child}/comm").read_text():
                return int(child)
    return None


def test_a_killed_driver_is_told_in_one_line(tmp_path: Path) -> None:
    command = [str(Path(sys.executable).parent / "sluicegate"), "run", "wordcount", "--seconds", "120", "--json"]
    command += ["--master", "local[2]", "--folder", str(tmp_path / "run")]
    with (tmp_path / "stderr").open("wb") as stderr:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stderr)
    try:
        assert wait_until((tmp_path / "run" / "operators" / "split+count" / "batches.jsonl").exists, 120.0, 0.2)
        java = java_of(process.pid)
        assert java is not None
        os.kill(java, signal.SIGKILL)
        assert process.wait(60) == 3
    finally:
        process.kill()
    (line,) = (tmp_path / "stderr").read_text().splitlines()
    assert re.fullmatch(
        r"sluicegate: Spark's driver process \(Java\) has ended \(killed by SIGKILL\): .* same folder.*", line
    )


def test_a_master_that_does_not_answer_is_told_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["run", "wordcount", "--json", "--master", "spark://127.0.0.1:9"]) == 3
    told = capsys.readouterr().err
    assert told.startswith("sluicegate: no Spark master answers at spark://127.0.0.1:9 (Connection refused): start it")
    assert told.count("\n") == 1
