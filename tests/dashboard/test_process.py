"""The dashboard as a process: how it starts, complains and ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import httpx
import pytest
from tests.ctrl_c import hears_ctrl_c
from tests.dashboard.sample_run import write_run

from sluicegate.dashboard.child import Dashboard
from sluicegate.errors import EnvironmentLacks

get = partial(httpx.get, timeout=60)  # a busy machine takes longer than httpx waits by itself

MODULE = [sys.executable, "-m", "sluicegate.dashboard"]


def complained(*arguments: str) -> tuple[int, str]:
    done = subprocess.run([*MODULE, *arguments], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stderr


def test_a_port_in_use_is_one_line_that_names_it(run_folder: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, said = complained(str(run_folder), f"--port={port}")
        with pytest.raises(EnvironmentLacks, match=f"port {port} of 127.0.0.1 is in use"):
            Dashboard(run_folder, port)
    assert code == 3
    assert said.count("\n") == 1
    assert f"port {port} of 127.0.0.1 is in use" in said
    assert "--port" in said


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--port=70000"], "a port is a number from 1 to 65535"),
        (["--host=no.such.name.invalid"], "this machine has no such address"),
    ],
)
def test_an_address_that_cannot_be_is_bad_input(run_folder: Path, arguments: list[str], why: str) -> None:
    code, said = complained(str(run_folder), *arguments)
    assert code == 2
    assert said.count("\n") == 1
    assert why in said


def test_the_command_says_so_where_there_is_no_pipeline(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from sluicegate.cli import main; main()", "dashboard", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "no run in" in done.stderr


def test_ctrl_c_ends_it_without_a_trace(run_folder: Path) -> None:
    with subprocess.Popen(
        [*MODULE, str(run_folder), "--port=0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hears_ctrl_c,
    ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().removeprefix("dashboard at ").strip()
        with httpx.stream("GET", f"{url}api/events", timeout=60):
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=60)
    assert process.returncode == 0
    assert said == "stopped\n"


def test_it_ends_when_its_parent_is_killed(run_folder: Path) -> None:
    story = (
        "import sys, time; from pathlib import Path; from sluicegate.dashboard.child import Dashboard\n"
        "beside = Dashboard(Path(sys.argv[1])); print(beside.pid, beside.url, flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", story, str(run_folder)], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid, url = parent.stdout.readline().split()
        assert get(f"{url}api/run").status_code == 200
        parent.kill()
    wait_until_gone(int(pid))
    with pytest.raises(httpx.ConnectError):
        get(f"{url}api/run")


def test_it_ends_with_its_block(tmp_path: Path) -> None:
    with Dashboard(write_run(tmp_path, ticks=3)) as beside:
        assert get(beside.url).status_code == 200
    with pytest.raises(httpx.ConnectError):
        get(beside.url)


def test_it_never_writes_into_the_folder(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", ticks=3)
    before = {path: path.stat().st_mtime_ns for path in [folder, *folder.iterdir()]}
    with Dashboard(folder) as beside:
        get(f"{beside.url}api/run")
    assert {path: path.stat().st_mtime_ns for path in [folder, *folder.iterdir()]} == before


def wait_until_gone(pid: int, most_s: float = 60.0) -> None:
    until = time.monotonic() + most_s
    while time.monotonic() < until:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    raise AssertionError(f"process {pid} is still there")
