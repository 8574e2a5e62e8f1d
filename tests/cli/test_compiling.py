"""The first command after an installation says on a terminal why it takes long."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # compiles the models

TOPOLOGY = 'name = "t"\n[[operators]]\nname = "a"\nservice_rate_per_s = 9.0\n[[edges]]\nfrom = "source"\nto = "a"\n'


def test_compiling_is_said_once_and_not_when_all_is_compiled(tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text(TOPOLOGY)
    told = [_plan(tmp_path).count(b"compiling the models: once after an installation") for _ in range(2)]
    assert told == [1, 0]


def _plan(folder: Path) -> bytes:
    """What a plan writes to a standard error that is a terminal."""
    ours, theirs = pty.openpty()
    asked = ["plan", "t.toml", "--rate", "5", "--slo", "mean=9s"]
    command = [sys.executable, "-c", "from sluicegate.cli.app import main; main()", *asked]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "compiled")}
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=theirs, cwd=folder, env=environment, check=True)
    os.write(theirs, b"end")
    said = b""
    while b"end" not in said:
        said += os.read(ours, 4096)
    os.close(theirs)
    os.close(ours)
    return said
