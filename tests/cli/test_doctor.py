from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sluicegate.cli.app import run
from sluicegate.cli.doctor import CHECKS


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICEGATE_HOME", str(tmp_path / "home"))


def test_a_machine_that_runs_the_tests_is_well(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "everything needed is here" in out
    assert out.count("\n") > len(CHECKS)


def test_a_missing_java_is_a_problem_with_a_remedy_and_exit_code_3(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    assert run(["doctor", "--json"]) == 3
    found = json.loads(capsys.readouterr().out)
    assert found["well"] is False
    (problem,) = [finding for finding in found["findings"] if finding["state"] == "problem"]
    assert problem["what"] == "Java"
    assert "install Java 17 or 21" in problem["remedy"]


def test_a_home_that_cannot_be_written_is_only_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SLUICEGATE_HOME", str(tmp_path / "file"))
    assert run(["doctor"]) == 0
    assert "set SLUICEGATE_HOME" in capsys.readouterr().out


def test_commands_beside_a_run_load_neither_spark_nor_compiled_code() -> None:
    code = (
        "import sys; from sluicegate.cli.app import run; run(['status', 'nowhere']); "
        "assert not {'pyspark', 'numba', 'scipy', 'pandas'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_the_shells_completion_knows_the_commands() -> None:
    command = str(Path(sys.executable).parent / "sluicegate")
    told = {"_SLUICEGATE_COMPLETE": "complete_bash", "COMP_WORDS": "sluicegate ex", "COMP_CWORD": "1"}
    done = subprocess.run([command], env={**os.environ, **told}, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["explain"]
