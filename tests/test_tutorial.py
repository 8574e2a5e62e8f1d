"""What the tutorial shows, runs: its files are written and its commands run in their order, in an empty folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_every_command_of_the_tutorial_works_in_order(tmp_path: Path) -> None:
    for name, text in re.findall(r"^`([\w.]+)`:\n\n```\w+\n(.+?)```", PAGE, flags=re.DOTALL | re.MULTILINE):
        (tmp_path / name).write_text(text, encoding="utf-8")
    bin_folder = Path(sys.executable).parent
    env = {**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}", "SLUICEGATE_HOME": str(tmp_path / "home")}
    commands = [line for block in re.findall(r"```sh\n(.+?)```", PAGE, flags=re.DOTALL) for line in block.splitlines()]
    assert len(commands) >= 9
    for command in commands:
        ran = subprocess.run(command, shell=True, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300)
        assert ran.returncode == 0, f"{command}: {ran.stderr[-2000:]}"
    assert {"day.html", "words.html", "again.html"} <= {path.name for path in tmp_path.iterdir()}
