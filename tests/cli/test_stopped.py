"""Ctrl-C and SIGTERM in the middle of commands that compute: one line, code 130, and nothing that goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.ctrl_c import below, sluicegate_in, wait_in

from sluicegate.cli.app import run
from sluicegate.spark.cluster.waiting import wait_until

TRACE = "minute,requests\n" + "".join(f"{minute},{1000 + minute % 600}\n" for minute in range(1440))


def workers_of(process: subprocess.Popen[str]) -> int:
    return len(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split())


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_replay_on_several_cores_is_stopped_with_its_workers(number: signal.Signals, tmp_path: Path) -> None:
    """SIGINT as a terminal sends it, to all of them; SIGTERM as a supervisor does, to the command alone."""
    (tmp_path / "day.csv").write_text(TRACE)
    with sluicegate_in(tmp_path, "replay", "day.csv", "--runs", "2000", "--cores", "2") as process:
        wait_in(process, lambda: workers_of(process) >= 3)  # two of them, and what keeps account of what they share
        if number == signal.SIGINT:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        out, err = process.communicate(timeout=120)
    assert (process.returncode, out, err) == (130, "", "sluicegate: stopped\n")
    assert wait_until(lambda: below(tmp_path) == [], 60.0, 0.2), below(tmp_path)


def test_ctrl_c_in_a_command_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(path: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("sluicegate.cli.status.find_run", interrupted)
    assert run(["status"]) == 130
    assert capsys.readouterr() == ("", "sluicegate: stopped\n")


def test_ctrl_c_while_the_commands_are_loaded_is_one_line(tmp_path: Path) -> None:
    """Which takes seconds on a busy machine."""
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt\n")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from sluicegate.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "sluicegate: stopped\n")
